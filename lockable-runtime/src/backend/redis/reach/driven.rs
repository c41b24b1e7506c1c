//! Connections that no forked process reads.
//!
//! A child has the sockets of its parent. Where it continues a runtime of the parent, the task that
//! drives a connection there would read answers that belong to the parent, and the parent's next answer
//! would go to the wrong call. So that task does nothing in a child.
//!
//! Over TLS the client opens the connection itself: a parent that misses a part of what was sent cannot
//! decrypt the rest, and its connection breaks.

use std::future::{Future, poll_fn};
use std::io;
use std::task::Poll;

use ::redis::aio::MultiplexedConnection;
use ::redis::io::tcp::{TcpSettings, socket2};
use ::redis::{AsyncConnectionConfig, Client, ConnectionAddr, RedisResult};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

use crate::types::process::Process;

/// How many commands may queue before callers wait; the client's 50 throttle a busy service.
const QUEUE: usize = 1024;

/// How many bytes are collected before they are sent while more commands queue. With the client's
/// 8 KiB, 64 busy tasks and the server take turns instead of working at the same time; of 1, 2, 4
/// and 8 KiB this was the fastest by `cargo bench --bench pairs`.
const FLUSH: usize = 2048;

/// A connection with the task that drives it, which ends with this.
pub(crate) struct Driven {
    pub(crate) commands: MultiplexedConnection,
    /// None where the client drives it.
    driver: Option<AbortHandle>,
}

impl Driven {
    /// Connects and logs in.
    pub(crate) async fn open(client: &Client) -> RedisResult<Self> {
        // Deadlines are ours: the client's would run on the caller's clock, which may be paused.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUE)
            .set_write_backpressure_boundary(FLUSH);
        let info = client.get_connection_info();
        match info.addr() {
            ConnectionAddr::Tcp(host, port) => {
                let stream = connect(host, *port, info.tcp_settings()).await?;
                Self::over(stream, client, config).await
            }
            #[cfg(unix)]
            ConnectionAddr::Unix(path) => {
                let stream = tokio::net::UnixStream::connect(path).await?;
                Self::over(stream, client, config).await
            }
            _ => {
                let commands = client.get_multiplexed_async_connection_with_config(&config).await?;
                Ok(Self { commands, driver: None })
            }
        }
    }

    async fn over<S>(stream: S, client: &Client, config: AsyncConnectionConfig) -> RedisResult<Self>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let settings = client.get_connection_info().redis_settings();
        let (commands, driver) =
            MultiplexedConnection::new_with_config(settings, stream, config).await?;
        let driver = in_this_process(driver);
        Ok(Self { commands, driver: Some(tokio::spawn(driver).abort_handle()) })
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        if let Some(driver) = &self.driver {
            driver.abort();
        }
    }
}

async fn connect(host: &str, port: u16, settings: &TcpSettings) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(settings.nodelay())?;
    let socket = socket2::SockRef::from(&stream);
    if let Some(keepalive) = settings.keepalive() {
        socket.set_tcp_keepalive(keepalive)?;
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket.set_tcp_user_timeout(settings.user_timeout())?;
    Ok(stream)
}

/// Makes no progress in a process that is forked from this one.
fn in_this_process<F: Future>(driver: F) -> impl Future<Output = F::Output> {
    let (process, mut driver) = (Process::current(), Box::pin(driver));
    poll_fn(move |cx| if process.is_current() { driver.as_mut().poll(cx) } else { Poll::Pending })
}
