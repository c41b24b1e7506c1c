//! Opens connections: the server's address, the credentials, and the deadlines.

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

/// [`Opener::patience`] of a reconnect, in connect deadlines.
const DEADLINES_AGAIN: u32 = 4;

#[derive(Clone)]
pub(crate) struct Opener {
    /// How the server is reached; without host and port if a finder names them.
    pub(crate) client: Client,
    pub(crate) certificates: Certificates,
    finder: Option<Arc<dyn Finder>>,
    node: Option<Arc<Node>>,
    credentials: SecretSource<Credentials>,
    pub(crate) server: Arc<str>,
    /// Identity of the store: equal for all lockers whose URLs lead to the same servers.
    pub(crate) store: Arc<str>,
    pub(crate) namespace: Namespace,
    pub(crate) client_name: Arc<str>,
    pub(crate) channels: Channels,
    pub(crate) timers: Handle,
    pub(crate) connect_deadline: Duration,
    pub(crate) command_deadline: Duration,
    /// Set when the server has refused a command with keys of several slots; never unset. From then on each command is
    /// about one lock.
    pub(crate) is_sharded: Arc<AtomicBool>,
    /// Whether the last server has a command that deletes a lock by its owner token, as far as is known: then a lock is
    /// acquired so that one command may release it.
    pub(crate) deletes: Arc<AtomicBool>,
    pub(crate) lost_counters: LostCounters,
    /// Set by the first connection; never unset.
    pub(crate) was_connected: Arc<AtomicBool>,
    pub(crate) offer: Arc<Offer>,
    pub(crate) demotion: Arc<Demotion>,
    pub(crate) precedence: Precedence,
    pub(crate) reports: Reports,
    /// Whether its user may be one who only reads locks.
    pub(crate) is_for_reading: bool,
    pub(crate) replicas: u8,
    /// Whether its connections wait for those replicas.
    pub(crate) is_for_confirming: bool,
}

#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) client: Client,
    pub(crate) server: Arc<str>,
    /// `None` if no finder named it.
    pub(crate) term: Option<Arc<dyn Term>>,
    /// `None` if the URL does not name a cluster.
    pub(crate) node: Option<Arc<Node>>,
    /// While it lasts, the connection counts; `None` has no end.
    pub(crate) epoch: Option<Arc<Epoch>>,
    /// Whether the builder, not the URL, gave the login.
    pub(crate) is_given: bool,
}

impl Opener {
    /// # Errors
    /// When the URL or a secret is invalid.
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

    pub(crate) fn found_by(self, finder: Arc<dyn Finder>) -> Self {
        Self { finder: Some(finder), ..self }
    }

    pub(crate) fn client_for(&self, info: ConnectionInfo, limit: Duration) -> Client {
        let tcp_settings = self.client.info.tcp_settings().clone();
        self.client.for_another(info.set_tcp_settings(tcp_settings), limit)
    }

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

    /// This opener for a server that reports only of these slots.
    pub(crate) fn with_slots(self, slot_owners: Arc<dyn ServerSlots>) -> Self {
        Self { reports: self.reports.of(slot_owners), ..self }
    }

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

    pub(crate) fn afresh(&self) -> Self {
        Self { client: self.client.afresh(), ..self.clone() }
    }

    /// This opener for connections that read locks.
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

    /// This opener for connections that block in `WAIT`.
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

    /// The login of a new connection: reads the files, or calls the user's function.
    pub(crate) async fn login(&self) -> Result<Login, Fault> {
        let login = Box::pin(self.credentials.login(self.connect_deadline)).await;
        login.map_err(|fault| fault::of_secret(&self.server, fault))
    }

    pub(crate) fn warn_of_certificates(&self) {
        if let Some(events) = self.reports.events() {
            self.certificates.ending().iter().for_each(|end| events.on_ending(end));
        }
    }

    pub(crate) async fn within<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        within(|| timer_on(&self.timers, limit), future).await
    }

    pub(crate) async fn connecting<T>(
        &self,
        connecting: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        self.connecting_within(self.connect_deadline, connecting).await
    }

    /// How long opening may take. A reconnect that renews gets longer: a server to which many processes reconnect
    /// answers each of them late, and starting over would cost it more.
    pub(crate) fn patience(&self, renews: bool) -> Duration {
        let is_again = renews && self.was_connected.load(Ordering::Relaxed);
        self.connect_deadline.saturating_mul(if is_again { DEADLINES_AGAIN } else { 1 })
    }

    /// Waits while a connection that renews is being opened, because that goes first; at most its `patience`.
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

    pub(crate) fn late(&self, progress: &Progress) -> Fault {
        let last = self.finder.as_ref().and_then(|finder| finder.last());
        let server = last.map_or_else(|| self.server.to_string(), |last| self.server_at(&last));
        let (message, advice) = progress.late(CONNECTING, self.connect_deadline);
        self.unreached(Fault::unavailable(format!("{server}: {message}")).advise(advice))
    }

    /// Until there was a connection, the address that Sentinels name may be at fault.
    pub(crate) fn unreached(&self, fault: Fault) -> Fault {
        let is_first = !self.was_connected.load(Ordering::Relaxed);
        if self.finder.is_none() || !is_first || fault.kind != LockErrorKind::Unavailable {
            return fault;
        }
        fault.advise(sentinel::ADDRESSES)
    }
}

impl Target {
    pub(crate) fn user(&self) -> &str {
        self.info().redis_settings().username().unwrap_or("default")
    }

    pub(crate) fn info(&self) -> &ConnectionInfo {
        &self.client.info
    }

    /// The client without what the login requests: the database, and the credentials if these were refused.
    pub(crate) fn anonymous(&self, is_login_refused: bool) -> Client {
        let settings = if is_login_refused {
            RedisConnectionInfo::default()
        } else {
            self.info().redis_settings().clone().set_db(0)
        };
        self.client.with(self.info().clone().set_redis_settings(settings))
    }

    pub(crate) fn named(&self) -> Option<String> {
        let is_named = self.term.is_some() || self.node.is_some();
        is_named.then(|| address::endpoint(self.info()))
    }

    pub(crate) fn has_password(&self) -> bool {
        self.info().redis_settings().password().is_some()
    }

    /// Whether the server was left: another is the primary, or it has no slots.
    pub(crate) fn is_over(&self) -> bool {
        self.epoch.as_ref().is_some_and(|epoch| epoch.is_over())
    }

    pub(crate) async fn unless_over<F: Future>(&self, future: F) -> Option<F::Output> {
        match &self.epoch {
            // Boxed, because every call would carry its size, and those to one server do not need it.
            Some(epoch) => Box::pin(epoch.unless_over(future)).await,
            None => Some(future.await),
        }
    }

    pub(crate) fn works(&self) {
        if let Some(term) = &self.term {
            term.works();
        }
    }

    /// The server could not be used: its finder is asked again.
    pub(crate) fn doubt(&self) {
        if let Some(term) = &self.term {
            term.doubt();
        }
    }

    pub(crate) fn url_of(&self, endpoint: &Endpoint) -> String {
        format!("{}://{endpoint}/{}", address::scheme(self.info()), self.database())
    }

    /// The URL to write if this is a Sentinel, which calls its primary that.
    pub(crate) fn url_of_sentinel(&self, primary: &str) -> String {
        let scheme = address::scheme(self.info());
        let endpoint = address::endpoint(self.info());
        match self.database() {
            0 => format!("{scheme}-sentinel://{endpoint}/{primary}"),
            database => format!("{scheme}-sentinel://{endpoint}/{primary}/{database}"),
        }
    }

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

pub(crate) const CONNECTING: &str = "could not connect";

/// A dead peer is noticed after a few deadlines if the system has a user timeout; an idle one within a minute.
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
