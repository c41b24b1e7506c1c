//! The same in a cluster, where each node sends what happens there.

use lockable_tests::Cluster;

use super::support::{end, hold, stopped, tracked};
use crate::support::{connect, until};

/// Goal: keys of several slots go into no read together, and each node is heard.
#[tokio::test]
async fn deleted_locks_stop_their_bodies_at_every_node() {
    let cluster = Cluster::builder().shards(2).replicas(0).start();
    let locker = connect(&cluster.url()).await;
    let names: Vec<_> = (0..20).map(|n| format!("k{n}")).collect();
    let bodies: Vec<_> = names.iter().map(|name| hold(&locker, name)).collect();
    let all = || cluster.masters().map(|master| tracked(&master.admin())).sum::<u64>();
    until(async || all() == 20).await;
    let (mut at_first, mut elsewhere) = (Vec::new(), Vec::new());
    let first = cluster.master_of("disLock:k0");
    for (name, body) in names.iter().zip(bodies) {
        let key = format!("disLock:{name}");
        let is_at_first = cluster.master_of(&key).addr() == first.addr();
        if is_at_first { &mut at_first } else { &mut elsewhere }.push((key, body));
    }
    assert!(at_first.len() > 2 && elsewhere.len() > 2);
    for (key, body) in [at_first.remove(0), elsewhere.remove(0)] {
        cluster.master_of(&key).admin().del(&key);
        stopped(body).await;
    }
    first.admin().flush();
    for (_, body) in at_first {
        stopped(body).await;
    }
    for (_, body) in elsewhere {
        assert!(!body.is_finished());
        end(body).await;
    }
}
