//! What opening a connection takes: where the server is now, the credentials, and the deadlines.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use ::redis::{Client, ConnectionInfo, RedisConnectionInfo};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::address::{self, Address, Group, Way};
#[cfg(feature = "tls")]
use super::certificates::Certificates;
use super::elections::Election;
#[cfg(not(feature = "tls"))]
use super::no_certificates::Certificates;
use super::sentinels::{Sentinel, Sentinels};
use super::votes::Place;
use super::watch::Watch;
use crate::backend::redis::fault::{self, sentinel};
use crate::backend::redis::fence::LostCounters;
use crate::backend::{Fault, Settings};
use crate::types::clock::{timer_on, within};
use crate::types::credentials::{Credentials, CredentialsSource};
use crate::types::error::{LockError, LockErrorKind};
use crate::types::namespace::Namespace;

/// Everything that opening a connection takes.
#[derive(Clone)]
pub(crate) struct Opener {
    /// How the server is reached; its host and port are none where Sentinels name them.
    info: ConnectionInfo,
    /// The Sentinels that name the server, where the URL has them.
    watch: Option<Arc<Watch>>,
    certificates: Certificates,
    credentials: Option<CredentialsSource>,
    /// Where the server is, without credentials.
    pub(crate) server: Arc<str>,
    /// The same for every locker that leads there.
    pub(crate) store: Arc<str>,
    pub(crate) namespace: Namespace,
    /// The runtime whose timers keep the deadlines.
    pub(crate) timers: Handle,
    pub(crate) connect_deadline: Duration,
    pub(crate) command_deadline: Duration,
    /// Set when the server has refused a command because its keys are in several slots; never unset.
    /// From then on each command of this locker is about one lock.
    pub(crate) is_sharded: Arc<AtomicBool>,
    pub(crate) lost_counters: LostCounters,
    /// Set when a connection was opened; never unset.
    pub(crate) was_connected: Arc<AtomicBool>,
}

/// Where one connection leads, and how it logs in there.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) client: Client,
    /// Where the server is, without credentials.
    pub(crate) server: Arc<str>,
    /// `None` where no Sentinels named it.
    pub(crate) election: Option<Election>,
}

impl Opener {
    /// # Errors
    /// When the URL or a certificate is not valid.
    pub(crate) fn new(settings: &Settings, timers: Handle) -> Result<Self, LockError> {
        let address = Address::parse(&settings.url)?;
        let certificates = Certificates::of(settings);
        let tcp_settings = tcp_settings(settings.deadlines.command);
        let server: Arc<str> = address.name.into();
        let info = address.server.set_tcp_settings(tcp_settings.clone());
        // That the certificates are valid shows here, before anything is opened.
        drop(certificates.client(info.clone())?);
        let watch = match address.way {
            Way::Fixed => None,
            Way::Elected(Group { sentinels, primary, credentials }) => {
                let credentials = settings.sentinel_credentials.clone().or(credentials);
                let sentinel = |info: ConnectionInfo| {
                    let name = address::place(&info);
                    let info = with_credentials(info, credentials.clone());
                    let info = info.set_tcp_settings(tcp_settings.clone());
                    Ok(Sentinel { client: certificates.client(info)?, name })
                };
                let each = sentinels.into_iter().map(sentinel).collect::<Result<_, LockError>>()?;
                let (name, limit) = (Arc::clone(&server), settings.deadlines.connect / 2);
                let (timers, elections) = (timers.clone(), Arc::default());
                let sentinels = Sentinels { each, primary, name, timers, limit, elections };
                Some(Arc::new(Watch::new(sentinels)))
            }
        };
        Ok(Self {
            info,
            watch,
            certificates,
            credentials: settings.credentials.clone(),
            server,
            store: address.store.into(),
            namespace: settings.namespace.clone(),
            timers,
            connect_deadline: settings.deadlines.connect,
            command_deadline: settings.deadlines.command,
            is_sharded: Arc::default(),
            lost_counters: LostCounters::default(),
            was_connected: Arc::default(),
        })
    }

    /// Where a connection leads that is opened now.
    pub(crate) async fn target(&self) -> Result<Target, Fault> {
        let (info, server, election) = match &self.watch {
            None => (self.info.clone(), Arc::clone(&self.server), None),
            Some(watch) => {
                let (place, election) = watch.watched().primary().await?;
                let info = address::moved(&self.info, &place.host, place.port);
                (info, self.server_at(&place).into(), Some(election))
            }
        };
        let info = with_credentials(info, self.fresh_credentials(&server).await?);
        let client = self.certificates.client(info)?;
        Ok(Target { client, server, election })
    }

    /// The Sentinels that name the server, where the URL has them.
    pub(crate) fn sentinels(&self) -> Option<&Sentinels> {
        self.watch.as_ref().map(|watch| &*watch.sentinels)
    }

    fn server_at(&self, place: &Place) -> String {
        format!("{} ({place})", self.server)
    }

    /// The same server without what the login asked for: the database, and the credentials too where these were
    /// refused.
    ///
    /// # Errors
    /// Hardly: the target had the same certificates.
    pub(crate) fn anonymous(
        &self,
        target: &Target,
        is_login_refused: bool,
    ) -> Result<Client, LockError> {
        let settings = if is_login_refused {
            RedisConnectionInfo::default()
        } else {
            target.info().redis_settings().clone().set_db(0)
        };
        self.certificates.client(target.info().clone().set_redis_settings(settings))
    }

    /// Has a value whenever connections are to lead to another server; `None` where they never do.
    pub(crate) fn changes(&self) -> Option<watch::Receiver<u64>> {
        self.watch.as_ref().map(|watch| watch.sentinels.elections.changes())
    }

    /// What the user's callback gives, which has three quarters of the connect deadline.
    ///
    /// See "Why are credentials asked for at every opening?" in DESIGN.md.
    async fn fresh_credentials(&self, server: &str) -> Result<Option<Credentials>, Fault> {
        let Some(source) = &self.credentials else { return Ok(None) };
        let limit = self.connect_deadline / 4 * 3;
        match self.within(limit, source.ask()).await {
            Some(Ok(credentials)) => Ok(Some(credentials)),
            Some(Err(error)) => Err(fault::of_credentials(server, error)),
            None => Err(fault::late_credentials(server, limit)),
        }
    }

    /// The future's output; `None` when the limit comes first.
    pub(crate) async fn within<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        within(|| timer_on(&self.timers, limit), future).await
    }

    /// The result within the connect deadline, or the fault that there is none.
    pub(crate) async fn connecting<T>(
        &self,
        connecting: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let limit = self.connect_deadline;
        let connected = self.within(limit, connecting).await;
        connected.unwrap_or_else(|| Err(self.late()))
    }

    /// No connection within the connect deadline.
    pub(crate) fn late(&self) -> Fault {
        let limit = self.connect_deadline;
        match self.sentinels().and_then(|sentinels| sentinels.elections.last()) {
            Some(place) => self.unreached(fault::connect_timeout(&self.server_at(&place), limit)),
            None => fault::connect_timeout(&self.server, limit),
        }
    }

    /// The fault of a server that Sentinels name; until there was a connection, their address for it may be at
    /// fault.
    pub(crate) fn unreached(&self, fault: Fault) -> Fault {
        let is_first = !self.was_connected.load(Ordering::Relaxed);
        if self.watch.is_none() || !is_first || fault.kind != LockErrorKind::Unavailable {
            return fault;
        }
        let message = format!("{}; {}", fault.message, sentinel::ADDRESSES);
        Fault { message, ..fault }
    }
}

impl Target {
    /// The user that logs in.
    pub(crate) fn user(&self) -> &str {
        self.info().redis_settings().username().unwrap_or("default")
    }

    pub(crate) fn info(&self) -> &ConnectionInfo {
        self.client.get_connection_info()
    }

    /// Its address, where Sentinels named it.
    pub(crate) fn named(&self) -> Option<String> {
        self.election.as_ref().map(|_| address::place(self.info()))
    }

    pub(crate) fn has_password(&self) -> bool {
        self.info().redis_settings().password().is_some()
    }

    /// Whether another server is the primary by now.
    pub(crate) fn is_over(&self) -> bool {
        self.election.as_ref().is_some_and(Election::is_over)
    }

    /// The future's output; `None` when another server becomes the primary first.
    pub(crate) async fn unless_over<F: Future>(&self, future: F) -> Option<F::Output> {
        match &self.election {
            Some(election) => election.unless_over(future).await,
            None => Some(future.await),
        }
    }

    /// The URL of another server with the same database, without credentials.
    pub(crate) fn url_of(&self, place: &Place) -> String {
        format!("{}://{place}/{}", address::scheme(self.info()), self.database())
    }

    /// The URL where this is a Sentinel, with the name that it has for its primary.
    pub(crate) fn url_of_sentinel(&self, primary: &str) -> String {
        let (scheme, place) = (address::scheme(self.info()), address::place(self.info()));
        match self.database() {
            0 => format!("{scheme}-sentinel://{place}/{primary}"),
            database => format!("{scheme}-sentinel://{place}/{primary}/{database}"),
        }
    }

    /// The server of a URL, for unit tests.
    #[cfg(test)]
    pub(crate) fn at(url: &str) -> Self {
        Self { client: Client::open(url).unwrap(), server: url.into(), election: None }
    }

    fn database(&self) -> i64 {
        self.info().redis_settings().db()
    }
}

fn with_credentials(info: ConnectionInfo, credentials: Option<Credentials>) -> ConnectionInfo {
    let Some(Credentials { user, password }) = credentials else { return info };
    let settings = info.redis_settings().clone().set_password(password);
    // Without a user, the password alone is sent, as servers before ACLs take it.
    let settings = match user {
        Some(user) => settings.set_username(user),
        None => settings,
    };
    info.set_redis_settings(settings)
}

/// A dead peer is noticed after a few deadlines where the system has a user timeout, an idle one within
/// a minute.
#[cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    expect(unused_variables, reason = "a user timeout is theirs alone")
)]
fn tcp_settings(command_deadline: Duration) -> TcpSettings {
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(15))
        .with_interval(Duration::from_secs(15));
    let settings = TcpSettings::default().set_nodelay(true).set_keepalive(keepalive);
    // At most a day: the system refuses what does not fit its 31 bits of milliseconds.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let settings = settings
        .set_user_timeout(command_deadline.saturating_mul(5).min(Duration::from_secs(86_400)));
    settings
}
