//! How a group is written down so that all in it know each other from the start.

use std::net::SocketAddr;
use std::time::Duration;

use super::Sentinels;
use crate::server::{Server, ServerBuilder, boot_all, on_free_ports};
use crate::tls::Tls;

/// The settings of a group that is not running yet.
#[derive(Clone, Debug)]
pub struct SentinelsBuilder {
    replicas: usize,
    down_after: Duration,
    server: ServerBuilder,
    sentinel: ServerBuilder,
    /// What the Sentinels say to the servers.
    password: Option<String>,
    is_fast: bool,
}

impl Default for SentinelsBuilder {
    fn default() -> Self {
        Self {
            replicas: 2,
            down_after: Duration::from_secs(1),
            // A stream that begins at once, and not with the replica's next acknowledgement; and timers that
            // do not add to what a start and a failover take.
            server: Server::builder().config("repl-diskless-sync", "no").config("hz", "100"),
            sentinel: Server::builder().sentinel(),
            password: None,
            is_fast: true,
        }
    }
}

impl SentinelsBuilder {
    /// How many replicas there are beside the primary.
    #[must_use]
    pub fn replicas(mut self, count: usize) -> Self {
        self.replicas = count;
        self
    }

    /// `down-after-milliseconds` of two Sentinels, a second unless this is called.
    #[must_use]
    pub fn down_after(mut self, limit: Duration) -> Self {
        self.down_after = limit;
        self
    }

    /// Lets the Sentinels ask and publish as seldom as those of a production do, where a failover takes
    /// longer and an old primary hears late that it is one.
    #[must_use]
    pub fn at_usual_periods(mut self) -> Self {
        self.is_fast = false;
        self
    }

    /// Adds a line of redis.conf to the primary and the replicas.
    #[must_use]
    pub fn server_config(mut self, name: &str, value: &str) -> Self {
        self.server = self.server.config(name, value);
        self
    }

    /// Adds a user to the primary and the replicas, by ACL rules.
    #[must_use]
    pub fn user(mut self, name: &str, rules: &str) -> Self {
        self.server = self.server.user(name, rules);
        self
    }

    /// Adds a user to each Sentinel, by ACL rules.
    #[must_use]
    pub fn sentinel_user(mut self, name: &str, rules: &str) -> Self {
        self.sentinel = self.sentinel.user(name, rules);
        self
    }

    /// Asks the default user of the primary and the replicas for a password, which they and the Sentinels
    /// have.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.server = self.server.password(password);
        self.password = Some(password.to_owned());
        self
    }

    /// Asks the default user of each Sentinel for a password, which the other Sentinels have.
    #[must_use]
    pub fn sentinel_password(mut self, password: &str) -> Self {
        self.sentinel = self.sentinel.password(password).config("sentinel sentinel-pass", password);
        self
    }

    /// All speak TLS with these certificates, to clients and to each other.
    ///
    /// The certificates must live as long as the servers start and restart.
    #[must_use]
    pub fn tls(mut self, tls: &Tls) -> Self {
        (self.server, self.sentinel) = (self.server.tls(tls), self.sentinel.tls(tls));
        self
    }

    /// Like [`tls`](Self::tls), and all ask every client for a certificate of the same authority.
    #[must_use]
    pub fn mutual_tls(mut self, tls: &Tls) -> Self {
        (self.server, self.sentinel) = (self.server.mutual_tls(tls), self.sentinel.mutual_tls(tls));
        self
    }

    /// Starts all of them, and waits until a failover could begin.
    pub fn start(self) -> Sentinels {
        on_free_ports(|| {
            let mut group = self.prepare();
            self.introduce(&mut group);
            // A replica that does not find its primary tries again a second later.
            let (primary, replicas) = group.servers.split_first().expect("there is a primary");
            primary.boot().and_then(|()| boot_all(replicas))?;
            group.wait_until_replicated();
            boot_all(&group.watchers)?;
            group.wait_until_ready(self.is_fast);
            Ok(group)
        })
    }

    fn prepare(&self) -> Sentinels {
        let servers = (0..=self.replicas).map(|_| self.server.clone().prepare());
        let watchers = (0..SENTINELS).map(|_| self.sentinel.clone().prepare());
        Sentinels { servers: servers.collect(), watchers: watchers.collect() }
    }

    /// Writes the lines that a group writes itself once all have found each other.
    fn introduce(&self, group: &mut Sentinels) {
        let addrs = |servers: &[Server]| -> Vec<String> {
            servers.iter().map(|server| words(server.service_addr())).collect()
        };
        let (servers, sentinels) = (addrs(&group.servers), addrs(&group.watchers));
        let (primary, replicas) = servers.split_first().expect("there is a primary");
        for replica in &mut group.servers[1..] {
            replica.configure(format!("replicaof {primary}"));
        }
        for (number, sentinel) in group.watchers.iter_mut().enumerate() {
            let others = sentinels.iter().enumerate().filter(|(other, _)| *other != number);
            let others = others.map(|(other, addr)| ("known-sentinel", known(addr, other)));
            let replicas = replicas.iter().map(|addr| ("known-replica", addr.clone()));
            let name = Sentinels::NAME;
            sentinel.configure(format!("sentinel myid {}", id(number)));
            sentinel.configure(format!("sentinel monitor {name} {primary} {QUORUM}"));
            for (term, value) in self.terms(number).chain(replicas).chain(others) {
                sentinel.configure(format!("sentinel {term} {name} {value}"));
            }
        }
    }

    /// The last Sentinel waits longer until it takes the primary for down, so that it votes for one of the
    /// others. Three that begin a failover at the same moment each vote for themselves, and begin again
    /// seconds later.
    fn terms(&self, number: usize) -> impl Iterator<Item = (&'static str, String)> {
        let down_after =
            if number + 1 == SENTINELS { 2 * self.down_after } else { self.down_after };
        let terms = [
            ("down-after-milliseconds", down_after.as_millis().to_string()),
            // A failover that finds no majority begins again after twice this time.
            ("failover-timeout", "3000".to_owned()),
            ("parallel-syncs", "2".to_owned()),
        ];
        terms.into_iter().chain(self.password.clone().map(|password| ("auth-pass", password)))
    }
}

fn known(addr: &str, number: usize) -> String {
    format!("{addr} {}", id(number))
}

fn words(addr: SocketAddr) -> String {
    format!("{} {}", addr.ip(), addr.port())
}

/// Forty hexadecimal digits that no other Sentinel has.
fn id(number: usize) -> String {
    format!("{:040x}", number + 1)
}

const SENTINELS: usize = 3;
const QUORUM: usize = 2;
