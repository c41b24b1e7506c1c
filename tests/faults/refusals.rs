//! Servers that answer, and refuse.

mod elsewhere;
mod foreign_data;
mod refused_writes;
mod rights;
mod spread_keys;
mod unready;
mod urls;
mod versions;

use lockable_tests::{Admin, Server, wait};

pub(crate) use self::unready::run_for_ever;
use crate::support::LIMIT;

/// A node without slots that has joined the cluster of this node.
fn newcomer_to(node: &Server) -> Server {
    let builder = Server::builder().config("cluster-enabled", "yes");
    let other = builder.config("cluster-node-timeout", "1000").start();
    let (admin, newcomer) = (node.admin(), other.admin());
    newcomer.command::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", "2"]);
    let (host, port) = (node.addr().ip().to_string(), node.addr().port().to_string());
    newcomer.command::<()>(&["CLUSTER", "MEET", &host, &port]);
    let id = newcomer.command::<String>(&["CLUSTER", "MYID"]);
    let says = |admin: &Admin, part: &str, words: &str| {
        admin.command::<String>(&["CLUSTER", part]).contains(words)
    };
    wait::until(LIMIT, || {
        says(&newcomer, "INFO", "cluster_state:ok") && says(&admin, "NODES", &id)
    });
    // From now on it takes no node for failed.
    newcomer.command::<()>(&["CONFIG", "SET", "cluster-node-timeout", "600000"]);
    other
}
