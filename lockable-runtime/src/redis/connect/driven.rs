//! Connections that a forked process does not read.
//!
//! A child has its parent's sockets. If it continues a runtime of the parent, the task that drives a connection would
//! read the parent's replies, and the parent's next reply would go to the wrong call. So that task does nothing in a
//! child.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::Poll;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, ProtocolVersion, PushInfo, RedisConnectionInfo, RedisResult};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::client::Client;
use super::first_reply::FirstReply;
use crate::core::process::Process;

/// How many commands may queue before callers wait; the client's default of 50 throttles a busy service.
const QUEUE: usize = 1024;

/// How many bytes are collected before they are sent, while more commands queue. With the client's 8 KiB, 64 busy tasks
/// and the server take turns instead of working at once; of 1, 2, 4 and 8 KiB this was the fastest in `cargo bench
/// --bench pairs`.
const FLUSH: usize = 2048;

/// A connection and the task that drives it, which ends when this is dropped.
pub(crate) struct Driven {
    pub(crate) commands: MultiplexedConnection,
    driver: AbortHandle,
    has_broken: watch::Receiver<bool>,
}

impl Driven {
    pub(crate) async fn open(client: &Client) -> RedisResult<Self> {
        Self::open_with(client, client.info.redis_settings(), config()).await
    }

    /// As [`open`](Self::open), but by RESP3, in which a server sends pushes between the replies. `hear` gets them, and
    /// may not block.
    pub(crate) async fn open_with_pushes(
        client: &Client,
        hear: impl Fn(PushInfo) + Send + Sync + 'static,
    ) -> RedisResult<Self> {
        Self::open_with(client, &hearing(client), heard_by(hear)).await
    }

    /// As [`open_with_pushes`](Self::open_with_pushes) if the server can, else as `open`; the flag says which.
    pub(crate) async fn open_tracking_if_offered(
        client: &Client,
        offer: &Offer,
        hear: impl Fn(PushInfo) + Send + Sync + 'static,
    ) -> RedisResult<(Self, bool)> {
        if !offer.is_tried() {
            return Ok((Self::open(client).await?, false));
        }
        let settings = hearing(client);
        let stream = client.connect().await?;
        match Self::login(client, stream, &settings, heard_by(hear)).await {
            Ok(driven) => {
                offer.works();
                Ok((driven, true))
            }
            Err(error) if error.is_io_error() => {
                offer.fails();
                Err(error)
            }
            // The other version's error is the one that counts.
            Err(_) => Ok((Self::open(client).await?, false)),
        }
    }

    async fn open_with(
        client: &Client,
        settings: &RedisConnectionInfo,
        config: AsyncConnectionConfig,
    ) -> RedisResult<Self> {
        Self::login(client, client.connect().await?, settings, config).await
    }

    async fn login(
        client: &Client,
        stream: FirstReply,
        settings: &RedisConnectionInfo,
        config: AsyncConnectionConfig,
    ) -> RedisResult<Self> {
        let opened = MultiplexedConnection::new_with_config(settings, stream, config).await;
        let (commands, driver) = client.first_answer(opened)?;
        let (broken, has_broken) = watch::channel(false);
        let driver = tokio::spawn(async move {
            in_this_process(driver).await;
            broken.send_replace(true);
        });
        Ok(Self { commands, driver: driver.abort_handle(), has_broken })
    }

    /// Waits for the end of the connection; returns whether it broke.
    pub(crate) fn end(&self) -> impl Future<Output = bool> + use<> {
        let mut has_broken = self.has_broken.clone();
        async move { has_broken.wait_for(|has_broken| *has_broken).await.is_ok() }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Offer {
    /// Never unset.
    has_worked: AtomicBool,
    /// How many connections in a row have ended at the first command of RESP3.
    failures: AtomicU32,
}

impl Offer {
    fn works(&self) {
        self.has_worked.store(true, Ordering::Relaxed);
        self.failures.store(0, Ordering::Relaxed);
    }

    fn fails(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the next connection is opened by RESP3. One is opened without it after a failure, or after two if RESP3
    /// has worked, because then the server may just be down.
    fn is_tried(&self) -> bool {
        let most = if self.has_worked.load(Ordering::Relaxed) { 2 } else { 1 };
        let gives_up = self.failures.load(Ordering::Relaxed) >= most;
        if gives_up {
            self.failures.store(0, Ordering::Relaxed);
        }
        !gives_up
    }
}

fn hearing(client: &Client) -> RedisConnectionInfo {
    client.info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3)
}

fn heard_by(hear: impl Fn(PushInfo) + Send + Sync + 'static) -> AsyncConnectionConfig {
    config().set_push_sender(move |push: PushInfo| {
        hear(push);
        Ok::<(), Infallible>(())
    })
}

/// Without deadlines: the client's would run on the caller's clock, which may be paused.
fn config() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(QUEUE)
        .set_write_backpressure_boundary(FLUSH)
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

fn in_this_process<F: Future>(driver: F) -> impl Future<Output = F::Output> {
    let process = Process::current();
    let mut driver = Box::pin(driver);
    poll_fn(move |cx| if process.is_current() { driver.as_mut().poll(cx) } else { Poll::Pending })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_hangs_up_gets_the_other_version() {
        let offer = Offer::default();
        let after_failure = |offer: &Offer| {
            offer.fails();
            offer.is_tried()
        };
        assert!(offer.is_tried() && !after_failure(&offer) && offer.is_tried());
        offer.works();
        assert!(after_failure(&offer) && !after_failure(&offer) && offer.is_tried());
        assert!(after_failure(&offer));
        offer.works();
        assert!(after_failure(&offer));
    }
}
