//! Servers that are the nodes of a cluster.

use std::time::Duration;

use crate::admin::Admin;
use crate::server::{Server, ServerBuilder};
use crate::wait;

/// Starts `shards` servers, each with its part of the slots; returns when all know of all.
pub fn start(builder: &ServerBuilder, shards: u16) -> Vec<Server> {
    let node = || builder.clone().config("cluster-enabled", "yes").start();
    let servers: Vec<_> = (0..shards).map(|_| node()).collect();
    for (number, server) in (0..shards).zip(&servers) {
        join(&server.admin(), &servers[0], number, shards);
    }
    let size = format!("cluster_size:{shards}\r");
    for server in &servers {
        let admin = server.admin();
        wait::until(PATIENCE, || {
            let info = admin.command::<String>(&["CLUSTER", "INFO"]);
            info.contains("cluster_state:ok") && info.contains(&size)
        });
    }
    servers
}

fn join(admin: &Admin, first: &Server, number: u16, shards: u16) {
    let start_of = |number: u16| u32::from(number) * SLOTS / u32::from(shards);
    let (from, to) = (start_of(number), start_of(number + 1) - 1);
    let (from, to, epoch) = (from.to_string(), to.to_string(), (number + 1).to_string());
    admin.command::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]);
    admin.command::<()>(&["CLUSTER", "ADDSLOTSRANGE", &from, &to]);
    let (host, port) = (first.addr().ip().to_string(), first.addr().port().to_string());
    admin.command::<()>(&["CLUSTER", "MEET", &host, &port]);
}

const SLOTS: u32 = 16_384;

/// Nodes gossip once a second.
const PATIENCE: Duration = Duration::from_secs(20);
