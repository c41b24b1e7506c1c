//! Opens streams to one server: its address, its certificates, and the words of an error at each stage.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::redis::io::tcp::socket2;
use ::redis::{ConnectionAddr, ConnectionInfo, RedisError, RedisResult};
use tokio::net::{TcpStream, lookup_host};
use tokio::runtime::Handle;
use tokio::time::Sleep;

#[cfg(feature = "tls-no-provider")]
use super::certificates::Certificates;
use super::first_reply::FirstReply;
#[cfg(not(feature = "tls-no-provider"))]
use super::no_certificates::Certificates;
use super::stage::{Progress, Stage};
use super::tcp;
use crate::core::process::clock::timer_on;
use crate::core::types::remedy::Advice;
use crate::redis::fault;

/// The pause between the tries of two addresses: the "Connection Attempt Delay" of RFC 8305.
const STAGGER: Duration = Duration::from_millis(250);

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) info: ConnectionInfo,
    certificates: Certificates,
    limit: Duration,
    timers: Handle,
    /// Set when a server reached in this way has answered, so the URL's scheme is right. Never unset.
    has_answered: Arc<AtomicBool>,
    pub(crate) progress: Progress,
}

impl Client {
    /// `limit` is that of a whole connection: half of it is for the handshake.
    pub(crate) fn new(
        info: ConnectionInfo,
        certificates: Certificates,
        timers: Handle,
        limit: Duration,
    ) -> Self {
        let has_answered = Arc::default();
        Self { info, certificates, limit, timers, has_answered, progress: Progress::default() }
    }

    pub(crate) fn with(&self, info: ConnectionInfo) -> Self {
        Self { info, ..self.clone() }
    }

    /// This client with its own progress, for a connection that is opened beside others.
    pub(crate) fn afresh(&self) -> Self {
        Self { progress: Progress::default(), ..self.clone() }
    }

    pub(crate) fn for_another(&self, info: ConnectionInfo, limit: Duration) -> Self {
        Self::new(info, self.certificates.clone(), self.timers.clone(), limit)
    }

    #[cfg(test)]
    pub(crate) fn at(url: &str) -> Self {
        let settings = crate::core::settings::Settings::default();
        let info = super::address::info(url).unwrap();
        let timers = crate::core::background::background().unwrap();
        let certificates = Certificates::of(&settings, &info, timers.clone()).unwrap();
        Self::new(info, certificates, timers, settings.deadlines.connect)
    }

    /// Opens a stream, over which only a handshake of TLS was sent.
    pub(crate) async fn connect(&self) -> RedisResult<FirstReply> {
        let stream = match self.info.addr() {
            ConnectionAddr::TcpTls { host, port, .. } => {
                let stream = self.connect_to(host, *port).await?;
                self.reach(Stage::Handshake);
                // Boxed, because a handshake is large, and most streams have none.
                let handshake = Box::pin(self.certificates.encrypt(stream, host, self.limit / 2));
                FirstReply::of(self.explain(handshake.await.map_err(RedisError::from))?)
            }
            #[cfg(unix)]
            ConnectionAddr::Unix(path) => {
                FirstReply::of(tokio::net::UnixStream::connect(path).await?)
            }
            ConnectionAddr::Tcp(host, port) => FirstReply::of(self.connect_to(host, *port).await?),
            _ => return Err(io::Error::from(io::ErrorKind::Unsupported).into()),
        };
        self.reach(Stage::Login);
        Ok(stream)
    }

    async fn connect_to(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        self.reach(Stage::Name(host.to_owned()));
        let found = lookup_host((host, port)).await.map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", self.progress.words().0))
        })?;
        let stream = tcp::connect(found.collect(), &self.progress, || self.stagger()).await?;
        let settings = self.info.tcp_settings();
        stream.set_nodelay(settings.nodelay())?;
        let socket = socket2::SockRef::from(&stream);
        if let Some(keepalive) = settings.keepalive() {
            socket.set_tcp_keepalive(keepalive)?;
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        socket.set_tcp_user_timeout(settings.user_timeout())?;
        Ok(stream)
    }

    pub(crate) fn stagger(&self) -> Sleep {
        timer_on(&self.timers, STAGGER.min(self.limit / 8))
    }

    pub(crate) fn first_answer<T>(&self, outcome: RedisResult<T>) -> RedisResult<T> {
        let outcome = self.explain(outcome)?;
        self.has_answered.store(true, Ordering::Relaxed);
        Ok(outcome)
    }

    pub(crate) fn sends(&self, command: impl Into<String>) {
        self.reach(Stage::Command(command.into()));
    }

    pub(crate) fn explain<T>(&self, outcome: RedisResult<T>) -> RedisResult<T> {
        outcome.map_err(|error| fault::at_stage(self.progress.words(), error))
    }

    fn reach(&self, stage: Stage) {
        let advice = self.advice(&stage);
        self.progress.reach(stage, advice);
    }

    /// What the URL may lack, until a server has answered.
    fn advice(&self, stage: &Stage) -> Advice {
        if self.has_answered.load(Ordering::Relaxed) {
            return Advice::default();
        }
        match (stage, self.info.addr()) {
            (Stage::Handshake, _) => fault::NO_TLS.into(),
            (Stage::Login, ConnectionAddr::Tcp(..)) => fault::TLS.into(),
            (Stage::Login, ConnectionAddr::TcpTls { .. }) if self.certificates.has_own() => {
                fault::CERTIFICATE_REFUSED.into()
            }
            (Stage::Login, ConnectionAddr::TcpTls { .. }) => fault::NO_CERTIFICATE,
            _ => Advice::default(),
        }
    }
}
