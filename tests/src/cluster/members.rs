//! Nodes that join a cluster, and leave it.

use std::sync::atomic::Ordering;

use super::builder::HANDSHAKES;
use super::view::LIMIT;
use super::{Cluster, Node};
use crate::server::Server;
use crate::wait;

impl Cluster {
    /// A node that was started as a stranger meets all others, and is a master without slots. Returns it when the
    /// cluster is healthy.
    pub fn join(&self) -> &Server {
        let node = self.nodes.iter().find(|node| !node.is_member());
        let node = node.expect("there is a stranger");
        node.is_member.store(true, Ordering::SeqCst);
        wait::until(LIMIT, || {
            self.members()
                .filter(|other| other.id() != node.id())
                .for_each(|other| node.meet(other));
            wait::poll(HANDSHAKES, || self.are_acquainted().then_some(())).is_some()
        });
        self.wait_until_healthy();
        &node.server
    }

    /// All forget a node that has no slots any more, and it forgets them. For a minute they tell each other to forget
    /// its name, so it joins again by another one.
    pub fn leave(&self, server: &Server) {
        let node = self.node(server);
        let id = node.id();
        node.is_member.store(false, Ordering::SeqCst);
        for other in self.running() {
            other.admin().command::<()>(&["CLUSTER", "FORGET", &id]);
        }
        node.admin().command::<()>(&["CLUSTER", "RESET", "HARD"]);
        node.learn_id();
        self.wait_until_healthy();
    }
}

impl Node {
    pub(super) fn meet(&self, other: &Self) {
        let addr = other.server.service_addr();
        let (host, port) = (addr.ip().to_string(), addr.port().to_string());
        self.admin().command::<()>(&["CLUSTER", "MEET", &host, &port]);
    }

    /// It joins later. When its last slot leaves, it stays a master, so that it can leave too.
    pub(super) fn keeps_to_itself(&self) {
        self.is_member.store(false, Ordering::SeqCst);
        let words = ["CONFIG", "SET", "cluster-allow-replica-migration", "no"];
        self.admin().command::<()>(&words);
    }
}
