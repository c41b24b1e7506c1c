//! How servers become a cluster.

use std::time::Duration;

use super::view::LIMIT;
use super::{Cluster, Node, SLOTS};
use crate::server::{Server, ServerBuilder, boot_all, on_free_ports};
use crate::tls::Tls;
use crate::wait;

/// The settings of a cluster that is not running yet.
#[derive(Clone, Debug)]
pub struct ClusterBuilder {
    shards: usize,
    replicas: usize,
    strangers: usize,
    node_timeout: Duration,
    server: ServerBuilder,
    is_steady: bool,
}

impl Default for ClusterBuilder {
    fn default() -> Self {
        Self {
            shards: 3,
            replicas: 3,
            strangers: 0,
            node_timeout: Duration::from_secs(1),
            // A stream that begins at once, and timers that do not add to what a start takes.
            server: Server::builder().config("repl-diskless-sync", "no").config("hz", "100"),
            is_steady: false,
        }
    }
}

impl ClusterBuilder {
    /// How many masters there are, each with its part of the slots; three unless this is called.
    #[must_use]
    pub fn shards(mut self, count: usize) -> Self {
        self.shards = count;
        self
    }

    /// How many replicas there are, which follow the masters in turn; three unless this is called.
    #[must_use]
    pub fn replicas(mut self, count: usize) -> Self {
        self.replicas = count;
        self
    }

    /// How many nodes are started that no other node knows, for [`Cluster::join`]; none unless this is called.
    #[must_use]
    pub fn strangers(mut self, count: usize) -> Self {
        self.strangers = count;
        self
    }

    /// `cluster-node-timeout`, a second unless this is called.
    #[must_use]
    pub fn node_timeout(mut self, limit: Duration) -> Self {
        self.node_timeout = limit;
        self
    }

    /// No node takes another one for failed, and none fails over by itself, however long a busy machine stalls
    /// them: for tests in which it is not the nodes that fail.
    #[must_use]
    pub fn steady(mut self) -> Self {
        self.is_steady = true;
        self
    }

    /// Makes the nodes of servers like this.
    #[must_use]
    pub fn servers(mut self, server: ServerBuilder) -> Self {
        self.server = server;
        self
    }

    /// Adds a line of redis.conf to every node.
    #[must_use]
    pub fn config(mut self, name: &str, value: &str) -> Self {
        self.server = self.server.config(name, value);
        self
    }

    /// Adds a user to every node, by ACL rules.
    #[must_use]
    pub fn user(mut self, name: &str, rules: &str) -> Self {
        self.server = self.server.user(name, rules);
        self
    }

    /// Asks the default user of every node for a password, which the replicas have.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.server = self.server.password(password);
        self
    }

    /// All nodes speak TLS with these certificates, to clients and to each other.
    ///
    /// The certificates must live as long as the nodes start and restart.
    #[must_use]
    pub fn tls(mut self, tls: &Tls) -> Self {
        self.server = self.server.tls(tls);
        self
    }

    /// Like [`tls`](Self::tls), and all ask every client for a certificate of the same authority.
    #[must_use]
    pub fn mutual_tls(mut self, tls: &Tls) -> Self {
        self.server = self.server.mutual_tls(tls);
        self
    }

    /// Starts all nodes, and waits until the cluster is healthy: about two seconds, in which a master that
    /// has started takes no writes.
    pub fn start(self) -> Cluster {
        let cluster = on_free_ports(|| self.boot());
        cluster.share_slots();
        cluster.share_epochs();
        cluster.introduce();
        cluster.replicate();
        cluster.wait_until_healthy();
        if self.is_steady {
            cluster.set_node_timeout(STEADY);
        }
        cluster
    }

    fn boot(&self) -> Result<Cluster, String> {
        let timeout = self.node_timeout.as_millis().to_string();
        let alone = if self.is_steady { "yes" } else { "no" };
        let server = self.server.clone().config("cluster-enabled", "yes");
        let server = server.config("cluster-replica-no-failover", alone);
        let server = server.config("cluster-node-timeout", &timeout);
        let count = self.shards + self.replicas + self.strangers;
        let servers: Vec<_> = (0..count).map(|_| server.clone().prepare()).collect();
        boot_all(&servers)?;
        let nodes: Vec<_> = servers.into_iter().map(Node::of).collect();
        for stranger in nodes.iter().rev().take(self.strangers) {
            stranger.keeps_to_itself();
        }
        Ok(Cluster { nodes, shards: self.shards })
    }
}

impl Cluster {
    /// Nodes give a handshake up that takes longer than a second, as on a machine that stalls: then they meet again.
    fn introduce(&self) {
        wait::until(LIMIT, || {
            self.meet();
            wait::poll(HANDSHAKES, || self.are_acquainted().then_some(())).is_some()
        });
    }

    /// Each meets all before it, so that none has to hear of another one by gossip. The first meets itself,
    /// and so learns its address also where it is alone.
    fn meet(&self) {
        for (number, node) in self.members().enumerate() {
            for other in &self.nodes[..number.max(1)] {
                node.meet(other);
            }
        }
    }

    fn share_slots(&self) {
        let start_of = |number: usize| number * usize::from(SLOTS) / self.shards;
        for (number, node) in self.nodes[..self.shards].iter().enumerate() {
            let (first, last) = (start_of(number), start_of(number + 1) - 1);
            let (first, last) = (first.to_string(), last.to_string());
            node.admin().command::<()>(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
        }
    }

    /// A node without one draws one when it meets another. A replica may draw its master's, and what it takes over is
    /// the master's for ever then: of two nodes with the same epoch none prevails.
    fn share_epochs(&self) {
        for (number, node) in self.members().enumerate() {
            let epoch = (number + 1).to_string();
            node.admin().command::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]);
        }
    }

    fn replicate(&self) {
        let (masters, others) = self.nodes.split_at(self.shards);
        let replicas = others.iter().filter(|node| node.is_member());
        for (replica, master) in replicas.zip(masters.iter().cycle()) {
            let admin = replica.admin();
            // It has not heard of the master yet.
            wait::until(LIMIT, || {
                admin.try_command(&["CLUSTER", "REPLICATE", &master.id()]).is_ok()
            });
        }
    }
}

/// Longer than any test. Only once all are healthy: a node that has started waits for as long as its timeout, at
/// most five seconds, until it takes writes.
const STEADY: Duration = Duration::from_secs(600);

/// Longer than all of them take, and than what becomes of those that are given up.
pub(super) const HANDSHAKES: Duration = Duration::from_secs(4);
