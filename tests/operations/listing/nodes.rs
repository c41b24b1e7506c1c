//! A listing of a cluster, while its slots move and its nodes fail.

use std::collections::BTreeSet;

use lockable_runtime::admin::Process;
use lockable_tests::cluster::slot;
use lockable_tests::{Cluster, Server};

use super::all;
use crate::support::{builder, connect};

/// Goal: a key that moves to a node that was gone through already is not missed, and one that moves the other
/// way is listed once. Method: between two pages, slots change hands in both directions.
#[tokio::test]
async fn locks_that_move_meanwhile_are_listed_once() {
    let cluster = Cluster::builder().replicas(0).start();
    let locker = connect(&cluster.url()).await;
    let mut held = Vec::new();
    for number in 0..600 {
        held.push(locker.lock(format!("{number}")).acquire().await.unwrap());
    }
    let masters: Vec<_> = cluster.first_masters().collect();
    let mut listing = locker.admin().locks();
    let mut found = Vec::new();
    while let Some(lock) = listing.next().await.transpose().unwrap() {
        let moves = [(0, 0, 1), (300, 2, 0)];
        for (_, from, to) in moves.iter().filter(|(count, ..)| *count == found.len()) {
            cluster.reshard(40, masters[*from], masters[*to]).unwrap();
        }
        found.push(lock.name().to_owned());
    }
    let names: BTreeSet<_> = found.iter().collect();
    assert_eq!((found.len(), names.len()), (600, 600));
}

/// Its key is at one node, and its queue may be at the other.
#[tokio::test]
async fn a_lock_whose_slot_moves_is_listed() {
    let cluster = Cluster::builder().replicas(0).start();
    let locker = connect(&cluster.url()).await;
    let _guard = locker.lock("a").acquire().await.unwrap();
    let name = "disLock:a";
    let to = cluster.masters().find(|it| it.addr() != cluster.master_of(name).addr()).unwrap();
    cluster.begin_move(slot(name), to);
    for is_moved in [false, true] {
        if is_moved {
            assert!(cluster.move_key(name).unwrap());
        }
        let lock = locker.admin().holder("a").await.unwrap().unwrap();
        assert!(lock.holder().process().is_some(), "{is_moved}");
        assert!(locker.admin().queue("a").await.unwrap().is_empty());
        let found = all(locker.admin().locks()).await;
        assert_eq!(found.keys().collect::<Vec<_>>(), ["a"], "{is_moved}");
    }
    cluster.end_move(slot(name)).unwrap();
}

#[tokio::test]
async fn a_dead_node_hides_no_other_nodes_locks() {
    let cluster =
        Cluster::builder().replicas(0).config("cluster-require-full-coverage", "no").start();
    let locker = connect(&cluster.url()).await;
    let [dead, alive, _] = cluster.first_masters().collect::<Vec<_>>()[..] else { unreachable!() };
    let _lost = locker.lock(name_at(&cluster, dead)).acquire().await.unwrap();
    let name = name_at(&cluster, alive);
    let _guard = locker.lock(&name).acquire().await.unwrap();
    dead.kill();
    assert!(!locker.admin().processes().await.unwrap().is_empty());
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    let mut listing = locker.admin().locks();
    while let Some(lock) = listing.next().await {
        match lock {
            Ok(lock) => found.push(lock.name().to_owned()),
            Err(error) => errors.push(error),
        }
    }
    assert_eq!(found, [name]);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].is_unavailable());
}

fn name_at(cluster: &Cluster, master: &Server) -> String {
    cluster.name_at(master, "disLock:").strip_prefix("disLock:").unwrap().to_owned()
}

#[tokio::test]
async fn a_process_has_one_line_for_all_nodes() {
    let cluster = Cluster::shared();
    let locker = builder(&cluster.url()).service_name("three").connect().await.unwrap();
    for master in cluster.first_masters() {
        locker.lock(name_at(&cluster, master)).run(async {}).await.unwrap();
    }
    let mut processes = locker.admin().processes().await.unwrap();
    processes.retain(|process| process.service() == "three");
    let connections: Vec<_> = processes.iter().map(Process::connections).collect();
    assert_eq!(connections.len(), 1);
    assert!(connections[0] >= 3, "{connections:?}");
}

#[tokio::test]
async fn the_keys_of_all_nodes_are_counted() {
    let cluster = Cluster::builder().replicas(0).start();
    let locker = connect(&cluster.url()).await;
    let mut held = Vec::new();
    for number in 0..60 {
        held.push(locker.lock(format!("{number}")).acquire().await.unwrap());
    }
    let sizes = cluster.first_masters().map(|it| it.admin().command::<u64>(&["DBSIZE"]));
    assert_eq!(locker.admin().count().await.unwrap(), sizes.sum::<u64>());
}
