//! What opening a connection takes: where the server is now, the credentials, and the deadlines.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use ::redis::{ConnectionInfo, RedisConnectionInfo};
use tokio::runtime::Handle;

use super::address::{self, Address, AddressKind};
#[cfg(feature = "tls-no-provider")]
use super::certificates::Certificates;
use super::client::Client;
use super::demotion::Demotion;
use super::driven::Offer;
use super::endpoint::Endpoint;
use super::finder::{Finder, Term};
use super::login::Login;
#[cfg(not(feature = "tls-no-provider"))]
use super::no_certificates::Certificates;
use super::node::Node;
use super::precedence::Precedence;
use super::reports::{Reports, ServerSlots};
use super::secrets::SecretSource;
use super::stage::{Progress, Stage};
use crate::core::backend::Fault;
use crate::core::backend::epochs::Epoch;
use crate::core::naming::client_name::ClientName;
use crate::core::naming::namespace::{Channels, Namespace};
use crate::core::process::clock::{timer_on, within};
use crate::core::settings::Settings;
use crate::core::types::credentials::Credentials;
use crate::core::types::error::{LockError, LockErrorKind};
use crate::redis::fault::{self, sentinel};
use crate::redis::fences::LostCounters;

/// What [`Opener::patience`] is for a connection that is opened again, in connect deadlines.
const DEADLINES_AGAIN: u32 = 4;

/// Everything that opening a connection takes.
#[derive(Clone)]
pub(crate) struct Opener {
    /// How the server is reached; its host and port are none where a finder names them.
    pub(crate) client: Client,
    pub(crate) certificates: Certificates,
    finder: Option<Arc<dyn Finder>>,
    /// The node of a cluster that the server is.
    node: Option<Arc<Node>>,
    credentials: SecretSource<Credentials>,
    /// Where the server is, without credentials.
    pub(crate) server: Arc<str>,
    /// Names the store: equal for all lockers whose URLs lead to the same servers.
    pub(crate) store: Arc<str>,
    pub(crate) namespace: Namespace,
    /// What its connections are called.
    pub(crate) client_name: Arc<str>,
    /// The kind of channels on which wake-ups are published.
    pub(crate) channels: Channels,
    /// The runtime whose timers keep the deadlines.
    pub(crate) timers: Handle,
    pub(crate) connect_deadline: Duration,
    pub(crate) command_deadline: Duration,
    /// Set when the server has refused a command because its keys are in several slots; never unset.
    /// From then on each command of this locker is about one lock.
    pub(crate) is_sharded: Arc<AtomicBool>,
    /// Whether the server that was connected to last has a command that deletes a lock by its owner token, as far as is
    /// known. A lock that is acquired meanwhile may be released by it.
    pub(crate) deletes: Arc<AtomicBool>,
    pub(crate) lost_counters: LostCounters,
    /// Set when a connection was opened; never unset.
    pub(crate) was_connected: Arc<AtomicBool>,
    pub(crate) offer: Arc<Offer>,
    pub(crate) demotion: Arc<Demotion>,
    pub(crate) precedence: Precedence,
    pub(crate) reports: Reports,
    /// Whether its connections look at locks alone, and so may be of a user who may not lock.
    pub(crate) is_for_reading: bool,
    /// How many replicas have to have a lock; zero where none has to.
    pub(crate) replicas: u8,
    /// Whether its connections wait for those replicas.
    pub(crate) is_for_confirming: bool,
}

/// Where one connection leads, and how it logs in there.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) client: Client,
    /// Where the server is, without credentials.
    pub(crate) server: Arc<str>,
    /// `None` where no finder named it.
    pub(crate) term: Option<Arc<dyn Term>>,
    /// `None` where it is no node of a cluster by the URL.
    pub(crate) node: Option<Arc<Node>>,
    /// In which the connection counts; `None` where that has no end.
    pub(crate) epoch: Option<Arc<Epoch>>,
    /// Whether the login is by what the builder was given.
    pub(crate) is_given: bool,
}

impl Opener {
    /// With how the server is found.
    ///
    /// # Errors
    /// When the URL or a secret is not valid.
    pub(crate) fn new(
        settings: &Settings,
        timers: Handle,
    ) -> Result<(Self, AddressKind), LockError> {
        let address = Address::parse(&settings.url)?;
        let certificates = Certificates::of(settings, &address.server, timers.clone())?;
        let info = address.server.set_tcp_settings(tcp_settings(settings.deadlines.command));
        let credentials = settings.credentials.clone();
        let deadline = settings.deadlines.connect;
        let credentials =
            SecretSource::new("credentials", credentials, timers.clone(), |_| Ok(()))?;
        let is_sharded = matches!(address.way, AddressKind::Sharded(_));
        let opener = Self {
            client: Client::new(info, certificates.clone(), timers.clone(), deadline),
            certificates,
            finder: None,
            node: None,
            credentials,
            server: address.name.into(),
            store: address.store.into(),
            namespace: settings.namespace.clone(),
            client_name: ClientName::current(settings.service.as_deref())?.to_string().into(),
            channels: if is_sharded { Channels::Sharded } else { Channels::Plain },
            timers,
            connect_deadline: deadline,
            command_deadline: settings.deadlines.command,
            is_sharded: Arc::new(AtomicBool::new(is_sharded)),
            deletes: Arc::default(),
            lost_counters: LostCounters::default(),
            was_connected: Arc::default(),
            offer: Arc::default(),
            demotion: Arc::default(),
            precedence: Precedence::default(),
            reports: Reports::default(),
            is_for_reading: false,
            replicas: settings.replicas,
            is_for_confirming: false,
        };
        Ok((opener, address.way))
    }

    /// Returns this opener for a server whose address the finder names.
    pub(crate) fn found_by(self, finder: Arc<dyn Finder>) -> Self {
        Self { finder: Some(finder), ..self }
    }

    /// Returns a client that reaches a server of another kind in the same manner as this one.
    pub(crate) fn client_for(&self, info: ConnectionInfo, limit: Duration) -> Client {
        let tcp_settings = self.client.info.tcp_settings().clone();
        self.client.for_another(info.set_tcp_settings(tcp_settings), limit)
    }

    /// Where a connection leads that is opened now, with what it logs in there.
    pub(crate) async fn target(&self, login: &Login) -> Result<Target, Fault> {
        let mut info = self.client.info.clone();
        let mut server = Arc::clone(&self.server);
        let mut epoch = self.node.as_ref().map(|node| Arc::new(node.epoch()));
        let mut term = None;
        if let Some(finder) = &self.finder {
            let (endpoint, found) = finder.find().await?;
            info = address::moved(&info, &endpoint.host, endpoint.port);
            server = self.server_at(&endpoint).into();
            epoch = Some(Arc::new(found.epoch().clone()));
            term = Some(found);
        }
        let client = self.client.with(login.put_into(info));
        let node = self.node.clone();
        Ok(Target { client, server, term, node, epoch, is_given: login.is_given() })
    }

    /// Returns this opener for a server that reports of these slots alone.
    pub(crate) fn with_slots(self, slot_owners: Arc<dyn ServerSlots>) -> Self {
        Self { reports: self.reports.of(slot_owners), ..self }
    }

    /// Returns an opener for one node of the cluster.
    pub(crate) fn of_node(&self, node: &Arc<Node>) -> Self {
        let info = address::moved(&self.client.info, &node.endpoint.host, node.endpoint.port);
        Self {
            client: self.client.afresh().with(info),
            node: Some(Arc::clone(node)),
            server: self.server_at(&node.endpoint).into(),
            was_connected: Arc::default(),
            offer: Arc::default(),
            demotion: Arc::default(),
            precedence: Precedence::default(),
            ..self.clone()
        }
    }

    /// Returns this opener for one connection, which may be opened beside others.
    pub(crate) fn afresh(&self) -> Self {
        Self { client: self.client.afresh(), ..self.clone() }
    }

    /// Returns this opener for connections that look at locks.
    ///
    /// See "Why does `Admin` have connections of its own?" in DESIGN.md.
    pub(crate) fn for_reading(&self) -> Self {
        Self {
            // What happens to them is no matter of the leases.
            reports: Reports::default(),
            is_for_reading: true,
            ..self.clone()
        }
    }

    /// Returns this opener for connections that wait for replicas, which block while they do.
    pub(crate) fn for_confirming(&self) -> Self {
        Self {
            // Whether their server has the locks is what they find.
            reports: Reports::default(),
            is_for_confirming: true,
            ..self.clone()
        }
    }

    fn server_at(&self, endpoint: &Endpoint) -> String {
        format!("{} ({endpoint})", self.server)
    }

    /// With what a connection logs in that is opened now: the files are read, or the user's function is called, where there are such.
    pub(crate) async fn login(&self) -> Result<Login, Fault> {
        let login = Box::pin(self.credentials.login(self.connect_deadline)).await;
        login.map_err(|fault| fault::of_secret(&self.server, fault))
    }

    /// Reports certificates that end soon.
    pub(crate) fn warn_of_certificates(&self) {
        if let Some(events) = self.reports.events() {
            self.certificates.ending().iter().for_each(|end| events.on_ending(end));
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
        self.connecting_within(self.connect_deadline, connecting).await
    }

    /// How long opening takes at most. One that renews gets longer, where leases may be held since an earlier one: a
    /// server to which many processes connect again answers each of them late, and to start over would cost it more.
    pub(crate) fn patience(&self, renews: bool) -> Duration {
        let is_again = renews && self.was_connected.load(Ordering::Relaxed);
        self.connect_deadline.saturating_mul(if is_again { DEADLINES_AGAIN } else { 1 })
    }

    /// Waits while a connection that renews is being opened, because that goes first; at most for its `patience`.
    pub(crate) async fn yields(&self) {
        let _over: Option<()> = self.within(self.patience(true), self.precedence.none()).await;
    }

    /// As [`connecting`](Self::connecting), but within `limit`.
    pub(crate) async fn connecting_within<T>(
        &self,
        limit: Duration,
        connecting: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        self.client.progress.reach(Stage::Ahead, "");
        let connected = self.within(limit, connecting).await;
        connected.unwrap_or_else(|| Err(self.late(&self.client.progress)))
    }

    /// Returns the fault that there was no connection within the connect deadline.
    pub(crate) fn late(&self, progress: &Progress) -> Fault {
        let last = self.finder.as_ref().and_then(|finder| finder.last());
        let server = last.map_or_else(|| self.server.to_string(), |last| self.server_at(&last));
        let (message, advice) = progress.late(CONNECTING, self.connect_deadline);
        self.unreached(Fault::unavailable(format!("{server}: {message}")).advise(advice))
    }

    /// The fault of a server that Sentinels name; until there was a connection, their address for it may be at
    /// fault.
    pub(crate) fn unreached(&self, fault: Fault) -> Fault {
        let is_first = !self.was_connected.load(Ordering::Relaxed);
        if self.finder.is_none() || !is_first || fault.kind != LockErrorKind::Unavailable {
            return fault;
        }
        fault.advise(sentinel::ADDRESSES)
    }
}

impl Target {
    /// The user that logs in.
    pub(crate) fn user(&self) -> &str {
        self.info().redis_settings().username().unwrap_or("default")
    }

    pub(crate) fn info(&self) -> &ConnectionInfo {
        &self.client.info
    }

    /// Returns the client for this server without what the login asked for: the database, and the credentials too where
    /// these were refused.
    pub(crate) fn anonymous(&self, is_login_refused: bool) -> Client {
        let settings = if is_login_refused {
            RedisConnectionInfo::default()
        } else {
            self.info().redis_settings().clone().set_db(0)
        };
        self.client.with(self.info().clone().set_redis_settings(settings))
    }

    /// Returns the address of the server, where Sentinels or the cluster named it.
    pub(crate) fn named(&self) -> Option<String> {
        let is_named = self.term.is_some() || self.node.is_some();
        is_named.then(|| address::endpoint(self.info()))
    }

    pub(crate) fn has_password(&self) -> bool {
        self.info().redis_settings().password().is_some()
    }

    /// Whether the server is left by now: another one is the primary, or it has no slots of the cluster.
    pub(crate) fn is_over(&self) -> bool {
        self.epoch.as_ref().is_some_and(|epoch| epoch.is_over())
    }

    /// The future's output; `None` when the server is left first.
    pub(crate) async fn unless_over<F: Future>(&self, future: F) -> Option<F::Output> {
        match &self.epoch {
            // Boxed, because every call would carry its size, and those to one server do not need it.
            Some(epoch) => Box::pin(epoch.unless_over(future)).await,
            None => Some(future.await),
        }
    }

    /// A connection is open.
    pub(crate) fn works(&self) {
        if let Some(term) = &self.term {
            term.works();
        }
    }

    /// The server could not be used: where a finder named it, that is asked again.
    pub(crate) fn doubt(&self) {
        if let Some(term) = &self.term {
            term.doubt();
        }
    }

    /// The URL of another server with the same database, without credentials.
    pub(crate) fn url_of(&self, endpoint: &Endpoint) -> String {
        format!("{}://{endpoint}/{}", address::scheme(self.info()), self.database())
    }

    /// The URL where this is a Sentinel, with the name that it has for its primary.
    pub(crate) fn url_of_sentinel(&self, primary: &str) -> String {
        let scheme = address::scheme(self.info());
        let endpoint = address::endpoint(self.info());
        match self.database() {
            0 => format!("{scheme}-sentinel://{endpoint}/{primary}"),
            database => format!("{scheme}-sentinel://{endpoint}/{primary}/{database}"),
        }
    }

    /// The server of a URL, for unit tests.
    #[cfg(test)]
    pub(crate) fn at(url: &str) -> Self {
        let client = Client::at(url);
        let server = url.into();
        Self { client, server, term: None, node: None, epoch: None, is_given: false }
    }

    fn database(&self) -> i64 {
        self.info().redis_settings().db()
    }
}

/// What does not happen within the connect deadline.
pub(crate) const CONNECTING: &str = "could not connect";

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

#[cfg(any(target_os = "linux", target_os = "android"))]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_gives_a_dead_peer_up_after_five_command_deadlines() {
        let limit = |deadline| tcp_settings(deadline).user_timeout();
        assert_eq!(limit(Duration::from_secs(2)), Some(Duration::from_secs(10)));
        assert_eq!(limit(Duration::MAX), Some(Duration::from_secs(86_400)), "as much as it takes");
    }
}
