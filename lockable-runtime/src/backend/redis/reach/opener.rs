//! What opening a connection takes: where the server is now, the credentials, and the deadlines.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use ::redis::{ConnectionInfo, RedisConnectionInfo};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::address::{self, Address, Group, Seeds, Way};
#[cfg(feature = "tls")]
use super::certificates::Certificates;
use super::client::Client;
use super::demotion::Demotion;
use super::driven::Offer;
use super::elections::Election;
use super::epochs::Epoch;
use super::login::{Login, Logins, with_credentials};
#[cfg(not(feature = "tls"))]
use super::no_certificates::Certificates;
use super::node::Node;
use super::place::Place;
use super::sentinels::{Sentinel, Sentinels};
use super::watch::Watch;
use crate::backend::redis::fault::{self, sentinel};
use crate::backend::redis::fence::LostCounters;
use crate::backend::redis::times::Times;
use crate::backend::{Fault, Settings};
use crate::types::client_name::ClientName;
use crate::types::clock::{timer_on, within};
use crate::types::error::{LockError, LockErrorKind};
use crate::types::namespace::{Channels, Namespace};

/// Everything that opening a connection takes.
#[derive(Clone)]
pub(crate) struct Opener {
    /// How the server is reached; its host and port are none where Sentinels name them.
    client: Client,
    route: Route,
    logins: Logins,
    /// Where the server is, without credentials.
    pub(crate) server: Arc<str>,
    /// The same for every locker that leads there.
    pub(crate) store: Arc<str>,
    pub(crate) namespace: Namespace,
    /// What its connections are called.
    pub(crate) client_name: Arc<str>,
    /// The kind of channels on which grants are published.
    pub(crate) channels: Channels,
    /// The runtime whose timers keep the deadlines.
    pub(crate) timers: Handle,
    pub(crate) connect_deadline: Duration,
    pub(crate) command_deadline: Duration,
    /// Set when the server has refused a command because its keys are in several slots; never unset.
    /// From then on each command of this locker is about one lock.
    pub(crate) is_sharded: Arc<AtomicBool>,
    pub(crate) lost_counters: LostCounters,
    pub(crate) times: Arc<Times>,
    /// Set when a connection was opened; never unset.
    pub(crate) was_connected: Arc<AtomicBool>,
    pub(crate) offer: Arc<Offer>,
    pub(crate) demotion: Arc<Demotion>,
    /// Whether its connections look at locks alone, and so may be of a user who may not lock.
    pub(crate) is_for_reading: bool,
}

/// How the server is found.
#[derive(Clone)]
enum Route {
    /// It is where the URL says.
    Fixed,
    /// The Sentinels of the URL name it.
    Elected(Arc<Watch>),
    /// The URL has these nodes of a cluster, which know the others.
    Sharded(Arc<[Place]>),
    /// It is this node of a cluster.
    Node(Arc<Node>),
}

/// Where one connection leads, and how it logs in there.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) client: Client,
    /// Where the server is, without credentials.
    pub(crate) server: Arc<str>,
    /// `None` where no Sentinels named it.
    pub(crate) election: Option<Election>,
    /// `None` where it is no node of a cluster by the URL.
    pub(crate) node: Option<Arc<Node>>,
    /// In which the connection counts; `None` where that has no end.
    epoch: Option<Epoch>,
    /// What to do where the server refuses the login, if it is not by the URL.
    pub(crate) login_advice: &'static str,
}

impl Opener {
    /// # Errors
    /// When the URL or a certificate is not valid.
    pub(crate) fn new(settings: &Settings, timers: Handle) -> Result<Self, LockError> {
        let address = Address::parse(&settings.url)?;
        let certificates = Certificates::of(settings, &address.server, timers.clone())?;
        let tcp_settings = tcp_settings(settings.deadlines.command);
        let server: Arc<str> = address.name.into();
        let info = address.server.set_tcp_settings(tcp_settings.clone());
        let client = Client::new(info, certificates.clone(), settings.deadlines.connect);
        let route = match address.way {
            Way::Fixed => Route::Fixed,
            Way::Sharded(Seeds { nodes }) => {
                Route::Sharded(nodes.iter().filter_map(address::place_of).collect())
            }
            Way::Elected(Group { sentinels, primary, credentials }) => {
                let credentials = settings.sentinel_credentials.clone().or(credentials);
                let (name, limit) = (Arc::clone(&server), settings.deadlines.connect / 2);
                let sentinel = |info: ConnectionInfo| {
                    let name = address::place(&info);
                    let info = with_credentials(info, credentials.clone());
                    let info = info.set_tcp_settings(tcp_settings.clone());
                    Sentinel { client: Client::new(info, certificates.clone(), limit), name }
                };
                let each = sentinels.into_iter().map(sentinel).collect();
                let (timers, elections) = (timers.clone(), Arc::default());
                let sentinels = Sentinels { each, primary, name, timers, limit, elections };
                Route::Elected(Arc::new(Watch::new(sentinels)))
            }
        };
        let login_limit = settings.deadlines.connect / 4 * 3;
        let logins = Logins::new(settings.credentials.clone(), timers.clone(), login_limit);
        let is_sharded = matches!(route, Route::Sharded(_));
        Ok(Self {
            client,
            route,
            logins,
            server,
            store: address.store.into(),
            namespace: settings.namespace.clone(),
            client_name: ClientName::current(settings.service.as_deref())?.to_string().into(),
            channels: if is_sharded { Channels::Sharded } else { Channels::Plain },
            timers,
            connect_deadline: settings.deadlines.connect,
            command_deadline: settings.deadlines.command,
            is_sharded: Arc::new(AtomicBool::new(is_sharded)),
            lost_counters: LostCounters::default(),
            times: Arc::default(),
            was_connected: Arc::default(),
            offer: Arc::default(),
            demotion: Arc::default(),
            is_for_reading: false,
        })
    }

    /// Where a connection leads that is opened now, with what it logs in there.
    pub(crate) async fn target(&self, login: &Login) -> Result<Target, Fault> {
        let (mut info, mut server) = (self.client.info.clone(), Arc::clone(&self.server));
        let (mut election, mut node, mut epoch) = (None, None, None);
        match &self.route {
            Route::Fixed | Route::Sharded(_) => {}
            Route::Elected(watch) => {
                let (place, elected) = watch.watched().primary().await?;
                info = address::moved(&info, &place.host, place.port);
                server = self.server_at(&place).into();
                epoch = Some(elected.epoch.clone());
                election = Some(elected);
            }
            Route::Node(of) => {
                epoch = Some(of.epoch());
                node = Some(Arc::clone(of));
            }
        }
        let client = self.client.with(login.put_into(info));
        Ok(Target { client, server, election, node, epoch, login_advice: login.advice() })
    }

    /// The Sentinels that name the server, where the URL has them.
    pub(crate) fn sentinels(&self) -> Option<&Sentinels> {
        match &self.route {
            Route::Elected(watch) => Some(&watch.sentinels),
            Route::Fixed | Route::Sharded(_) | Route::Node(_) => None,
        }
    }

    /// Nodes of a cluster, where the URL has them.
    pub(crate) fn seeds(&self) -> Option<&[Place]> {
        match &self.route {
            Route::Sharded(seeds) => Some(seeds),
            Route::Fixed | Route::Elected(_) | Route::Node(_) => None,
        }
    }

    /// The same for one node of the cluster.
    pub(crate) fn of_node(&self, node: &Arc<Node>) -> Self {
        let info = address::moved(&self.client.info, &node.place.host, node.place.port);
        Self {
            client: self.client.with(info),
            route: Route::Node(Arc::clone(node)),
            server: self.server_at(&node.place).into(),
            times: Arc::default(),
            was_connected: Arc::default(),
            offer: Arc::default(),
            demotion: Arc::default(),
            ..self.clone()
        }
    }

    /// The same for connections that look at locks.
    ///
    /// See "Why does looking have connections of its own?" in DESIGN.md.
    pub(crate) fn for_reading(&self) -> Self {
        Self { times: Arc::default(), is_for_reading: true, ..self.clone() }
    }

    fn server_at(&self, place: &Place) -> String {
        format!("{} ({place})", self.server)
    }

    /// Has a value whenever connections are to lead to another server; `None` where they never do.
    pub(crate) fn changes(&self) -> Option<watch::Receiver<u64>> {
        self.sentinels().map(|sentinels| sentinels.elections.changes())
    }

    /// With what a connection logs in that is opened now; the user's callback is asked, where there is one.
    pub(crate) async fn login(&self) -> Result<Login, Fault> {
        Box::pin(self.logins.next(&self.server)).await
    }

    /// The URL of one server at this place, without credentials.
    pub(crate) fn url_of(&self, place: &Place) -> String {
        format!("{}://{place}", address::scheme(&self.client.info))
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
        if self.sentinels().is_none() || !is_first || fault.kind != LockErrorKind::Unavailable {
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
        &self.client.info
    }

    /// The same server without what the login asked for: the database, and the credentials too where these were
    /// refused.
    pub(crate) fn anonymous(&self, is_login_refused: bool) -> Client {
        let settings = if is_login_refused {
            RedisConnectionInfo::default()
        } else {
            self.info().redis_settings().clone().set_db(0)
        };
        self.client.with(self.info().clone().set_redis_settings(settings))
    }

    /// Its address, where Sentinels named it.
    pub(crate) fn named(&self) -> Option<String> {
        let is_named = self.election.is_some() || self.node.is_some();
        is_named.then(|| address::place(self.info()))
    }

    pub(crate) fn has_password(&self) -> bool {
        self.info().redis_settings().password().is_some()
    }

    /// Whether the server is left by now: another one is the primary, or it has no slots of the cluster.
    pub(crate) fn is_over(&self) -> bool {
        self.epoch.as_ref().is_some_and(Epoch::is_over)
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
        if let Some(election) = &self.election {
            election.works();
        }
    }

    /// The server could not be used: where Sentinels named it, they are asked again.
    pub(crate) fn doubt(&self) {
        if let Some(election) = &self.election {
            election.doubt();
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
        let client = Client::at(url);
        let server = url.into();
        Self { client, server, election: None, node: None, epoch: None, login_advice: "" }
    }

    fn database(&self) -> i64 {
        self.info().redis_settings().db()
    }
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
