//! The way to one server: where it is, how it is logged in at, and what it must have shown by then.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::redis::io::tcp::{TcpSettings, socket2};
use ::redis::{ConnectionAddr, ConnectionInfo, RedisError, RedisResult};
use tokio::net::TcpStream;

#[cfg(feature = "tls-no-provider")]
use super::certificates::{Certificates, Encrypted};
#[cfg(not(feature = "tls-no-provider"))]
use super::no_certificates::{Certificates, Encrypted};
use crate::backend::redis::fault::{self, Stage};

/// Opens streams to one server.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) info: ConnectionInfo,
    certificates: Certificates,
    /// How long the server may take for the handshake of TLS.
    handshake_limit: Duration,
    /// Set when a server has answered that is reached in this way: it speaks what the URL says. Never unset.
    has_answered: Arc<AtomicBool>,
}

/// A stream that is open, over which nothing was sent but a handshake.
pub(crate) enum Transport {
    Plain(TcpStream),
    Encrypted(Box<Encrypted>),
    #[cfg(unix)]
    Socket(tokio::net::UnixStream),
}

impl Client {
    /// For connections that have to be open within that time: half of it is for the handshake.
    pub(crate) fn new(info: ConnectionInfo, certificates: Certificates, limit: Duration) -> Self {
        let handshake_limit = limit / 2;
        Self { info, certificates, handshake_limit, has_answered: Arc::default() }
    }

    /// The way to another server, or with another login, in the same manner.
    pub(crate) fn with(&self, info: ConnectionInfo) -> Self {
        Self { info, ..self.clone() }
    }

    /// The way to a server of another kind, which has to be open within that time.
    pub(crate) fn for_another(&self, info: ConnectionInfo, limit: Duration) -> Self {
        Self::new(info, self.certificates.clone(), limit)
    }

    /// The way that a URL says, for unit tests.
    #[cfg(test)]
    pub(crate) fn at(url: &str) -> Self {
        let settings = crate::backend::Settings::default();
        let info = super::address::info(url).unwrap();
        let timers = crate::background::background().unwrap();
        let certificates = Certificates::of(&settings, &info, timers).unwrap();
        Self::new(info, certificates, settings.deadlines.connect)
    }

    pub(crate) async fn connect(&self) -> RedisResult<Transport> {
        let settings = self.info.tcp_settings();
        Ok(match self.info.addr() {
            ConnectionAddr::TcpTls { host, port, .. } => {
                let stream = connect_to(host, *port, settings).await?;
                let limit = self.handshake_limit;
                // Boxed, because a handshake is large, and most streams have none.
                let handshake = Box::pin(self.certificates.encrypt(stream, host, limit));
                let encrypted = handshake.await.map_err(RedisError::from);
                Transport::Encrypted(Box::new(self.explain(Stage::Handshake, encrypted)?))
            }
            #[cfg(unix)]
            ConnectionAddr::Unix(path) => {
                Transport::Socket(tokio::net::UnixStream::connect(path).await?)
            }
            ConnectionAddr::Tcp(host, port) => {
                Transport::Plain(connect_to(host, *port, settings).await?)
            }
            _ => return Err(io::Error::from(io::ErrorKind::Unsupported).into()),
        })
    }

    /// The outcome of a login, which is the first that a server answers.
    pub(crate) fn first_answer<T>(&self, outcome: RedisResult<T>) -> RedisResult<T> {
        let stage = match self.info.addr() {
            ConnectionAddr::TcpTls { .. } if self.certificates.has_own() => Stage::Identified,
            ConnectionAddr::TcpTls { .. } => Stage::Encrypted,
            ConnectionAddr::Tcp(..) => Stage::Plain,
            _ => return outcome,
        };
        let outcome = self.explain(stage, outcome)?;
        self.has_answered.store(true, Ordering::Relaxed);
        Ok(outcome)
    }

    /// Where no server has answered yet, the error is one that says what the URL may lack.
    fn explain<T>(&self, stage: Stage, outcome: RedisResult<T>) -> RedisResult<T> {
        let is_known = self.has_answered.load(Ordering::Relaxed);
        outcome.map_err(|error| if is_known { error } else { fault::of_first_answer(stage, error) })
    }
}

async fn connect_to(host: &str, port: u16, settings: &TcpSettings) -> io::Result<TcpStream> {
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
