//! What happens to the nodes of a cluster.

use std::time::Duration;

use super::view::{LIMIT, View};
use super::{Cluster, is_master};
use crate::server::Server;
use crate::wait;

impl Cluster {
    /// From now on a node takes another one for failed when that one has been silent for this time.
    pub fn set_node_timeout(&self, limit: Duration) {
        let millis = limit.as_millis().to_string();
        for node in self.running() {
            node.admin().command::<()>(&["CONFIG", "SET", "cluster-node-timeout", &millis]);
        }
    }

    /// Ends the master of a key's slot by SIGKILL, and returns it. Its replica is promoted seconds later.
    pub fn kill_master(&self, name: &str) -> &Server {
        let master = self.master_of(name);
        master.kill();
        master
    }

    /// Stops the master of a key's slot and all of its replicas, and returns them: no one else has the slot.
    pub fn freeze_shard(&self, name: &str) -> Vec<&Server> {
        let master = self.node(self.master_of(name));
        let view = View::of(&master.admin());
        let first = master.id();
        let is_in_it = |id: &str| id == first || view.master_of(id) == Some(&*first);
        let nodes = self.running().filter(|node| is_in_it(&node.id()));
        let frozen: Vec<_> = nodes.map(|node| &node.server).collect();
        for server in &frozen {
            server.pause();
        }
        frozen
    }

    /// Waits until a replica takes itself for a master, which it does once most masters have voted for it.
    pub async fn promoted(&self, replica: &Server) {
        let admin = replica.admin();
        wait::until_async(LIMIT, async || is_master(&admin)).await;
    }

    /// Makes a replica the master of a key's slot while the master is there, and returns it when all nodes
    /// name it.
    ///
    /// Two of these at the same time may have to wait for each other's election.
    pub fn fail_over(&self, name: &str) -> &Server {
        let before = self.master_of(name);
        let replica = self.replica_of(name).admin();
        // It takes up to a second until a replica that has just been linked can be promoted.
        wait::until(LIMIT, || {
            is_master(&replica) || {
                drop(replica.try_command(&["CLUSTER", "FAILOVER"]));
                wait::poll(ELECTION, || is_master(&replica).then_some(())).is_some()
            }
        });
        self.other_than(name, before)
    }
}

impl Cluster {
    /// Makes a replica the master of a key's slot at once, also where other nodes do not know it yet, and returns
    /// it when its master follows it. What that one has not passed on is lost.
    pub fn take_over(&self, name: &str) -> &Server {
        let (master, replica) = (self.master_of(name).admin(), self.replica_of(name));
        replica.admin().command::<()>(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
        wait::until(LIMIT, || !is_master(&master));
        replica
    }
}

/// The server gives a planned failover up after five seconds.
const ELECTION: Duration = Duration::from_secs(6);
