//! A primary with replicas, and the Sentinels that watch over them.

use std::net::SocketAddr;
use std::time::Duration;

use crate::proxy::Proxy;
use crate::server::{Server, host};
use crate::wait;

mod builder;
mod state;
mod switches;

pub use builder::SentinelsBuilder;
pub use switches::Switches;

use state::named_by;

/// A primary, its replicas and three Sentinels, all on free ports of 127.0.0.1.
///
/// They know each other from the start, so a failover can begin as soon as this value is there. They end
/// when it is dropped, as every [`Server`] does.
#[derive(Debug)]
pub struct Sentinels {
    /// The first one was the primary at the start.
    servers: Vec<Server>,
    watchers: Vec<Server>,
}

impl Sentinels {
    /// The name that the Sentinels have for the primary.
    pub const NAME: &str = "mm";

    /// Starts a primary, two replicas and three Sentinels with nothing special about them.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// Prepares servers with settings of their own.
    pub fn builder() -> SentinelsBuilder {
        SentinelsBuilder::default()
    }

    /// The URL without a user, a password and a database, through which clients find the primary.
    pub fn url(&self) -> String {
        self.url_of(&self.hosts())
    }

    /// The same URL with a user and a password of the servers; the user may be empty.
    pub fn url_with(&self, user: &str, password: &str) -> String {
        self.url_of(&format!("{user}:{password}@{}", self.hosts()))
    }

    /// The same URL, which leads to each Sentinel through one of these proxies, the first ones.
    pub fn url_through(&self, stub_nodes: &[Proxy]) -> String {
        let stub_nodes = stub_nodes.iter().take(self.watchers.len());
        self.url_of(&join(stub_nodes.map(|stub_node| host(stub_node.addr(), self.is_tls()))))
    }

    /// What a URL says between its scheme and the name of the primary: where the Sentinels are.
    pub fn hosts(&self) -> String {
        join(self.watchers.iter().map(Server::service_host))
    }

    /// A proxy in front of each Sentinel, to cut some clients off from them.
    pub fn stub_nodes(&self) -> Vec<Proxy> {
        self.watchers.iter().map(|sentinel| Proxy::to(sentinel.service_addr())).collect()
    }

    /// A proxy in front of each Sentinel and then of each server, for one client: it gets to the servers through them.
    pub fn all_stub_nodes(&self) -> Vec<Proxy> {
        Proxy::in_front_of(self.watchers.iter().chain(&self.servers).map(Server::service_addr))
    }

    /// The Sentinels, in the order of the URL.
    pub fn sentinels(&self) -> &[Server] {
        &self.watchers
    }

    /// The primary and the replicas; the first one was the primary at the start.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The server that the Sentinels which answer name as the primary, when they all name the same.
    pub fn primary(&self) -> &Server {
        self.agreed(|_| true)
    }

    /// All other servers.
    pub fn replicas(&self) -> impl Iterator<Item = &Server> {
        let primary = self.primary().addr();
        self.servers.iter().filter(move |server| server.addr() != primary)
    }

    /// Ends the primary by SIGKILL, and returns it. The switch takes seconds from here.
    pub fn kill_primary(&self) -> &Server {
        let primary = self.primary();
        primary.kill();
        primary
    }

    /// Makes a replica the primary while the primary is there, and returns it when all Sentinels name it.
    ///
    /// A failover that takes too long is aborted, and asked for again.
    pub fn fail_over(&self) -> &Server {
        let before = self.primary();
        let aborted = || self.watchers[0].log().matches("-failover-abort-").count();
        let mut seen = aborted();
        self.start_failover();
        self.agreed(|server| {
            let is_switched = server.addr() != before.addr();
            if !is_switched && aborted() > seen {
                seen = aborted();
                self.start_failover();
            }
            is_switched
        })
    }

    /// Asks the first Sentinel for a failover, and returns when that has begun.
    ///
    /// A Sentinel refuses it right after another one, when it has not heard of the replicas yet.
    pub fn start_failover(&self) {
        let admin = self.watchers[0].admin();
        let fail_over = ["SENTINEL", "FAILOVER", Self::NAME];
        wait::until(SWITCH_LIMIT, || admin.try_command(&fail_over).is_ok());
    }

    /// From now on a Sentinel takes a server for down only when it has been silent for this time: for the rest of a
    /// test that has seen its failover.
    pub fn set_down_after(&self, limit: Duration) {
        let millis = limit.as_millis().to_string();
        let set = ["SENTINEL", "SET", Self::NAME, "down-after-milliseconds", &millis];
        self.running_sentinels().for_each(|sentinel| sentinel.admin().command(&set));
    }

    /// The new primary, when all Sentinels that answer name another one than `before`.
    pub fn other_than(&self, before: &Server) -> &Server {
        self.agreed(|server| server.addr() != before.addr())
    }

    /// Cuts the primary off from its replicas and from the Sentinels, while its other clients stay, and
    /// returns it. A password that they do not have keeps them out.
    ///
    /// Users with a password of their own may still connect.
    pub fn isolate_primary(&self) -> &Server {
        let primary = self.primary();
        let admin = primary.admin();
        admin.command::<()>(&["CONFIG", "SET", "requirepass", "isolated"]);
        for client in admin.command::<String>(&["CLIENT", "LIST"]).lines() {
            let is_watching = client.contains(" name=sentinel-") || client.contains(" flags=S");
            if let (true, Some(id)) = (is_watching, id(client)) {
                // It may be gone by itself.
                drop(admin.try_command(&["CLIENT", "KILL", "ID", id]));
            }
        }
        primary
    }

    /// Cuts the replicas off and stops them: what is written from now on is on the primary alone, until
    /// [`resume_replicas`](Self::resume_replicas).
    pub fn pause_replicas(&self) {
        let primary = self.primary().admin();
        self.replicas().for_each(Server::pause);
        // Otherwise they would find it in their sockets.
        primary.command::<u64>(&["CLIENT", "KILL", "TYPE", "replica"]);
    }

    /// Resumes all servers that were paused.
    pub fn resume_replicas(&self) {
        let paused = self.servers.iter().filter(|server| server.is_paused());
        paused.for_each(Server::resume);
    }

    /// Listens for the switches that any Sentinel publishes from now on.
    pub fn switches(&self) -> Switches {
        Switches::of(self.running_sentinels().map(Server::admin_url))
    }

    /// Waits until all Sentinels that answer name the same server, of which `condition` holds.
    fn agreed(&self, mut condition: impl FnMut(&Server) -> bool) -> &Server {
        let named = || {
            let named = self.named()?;
            self.servers.iter().find(|server| server.service_addr() == named)
        };
        let named = || named().filter(|server| condition(server));
        wait::poll(SWITCH_LIMIT, named).unwrap_or_else(|| {
            let logs: Vec<_> = self.watchers.iter().map(Server::log).collect();
            panic!("the Sentinels do not agree on such a server:\n{}", logs.join("\n"))
        })
    }

    /// Where the primary is, if all that answer say the same.
    fn named(&self) -> Option<SocketAddr> {
        let mut answers = self.running_sentinels().map(|sentinel| named_by(&sentinel.admin()));
        let first = answers.next()??;
        answers.all(|answer| answer == Some(first)).then_some(first)
    }

    fn running_sentinels(&self) -> impl Iterator<Item = &Server> {
        self.watchers.iter().filter(|sentinel| sentinel.is_running())
    }

    fn url_of(&self, hosts: &str) -> String {
        let scheme = if self.is_tls() { "rediss-sentinel" } else { "redis-sentinel" };
        format!("{scheme}://{hosts}/{}", Self::NAME)
    }

    fn is_tls(&self) -> bool {
        self.servers[0].is_tls()
    }
}

fn id(client: &str) -> Option<&str> {
    client.split(' ').find_map(|field| field.strip_prefix("id="))
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(",")
}

/// A failover takes a few seconds; one that finds no majority at first begins again. A Sentinel that did not run for
/// two seconds begins none for thirty.
const SWITCH_LIMIT: Duration = Duration::from_secs(60);
