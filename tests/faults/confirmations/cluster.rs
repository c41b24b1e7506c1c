//! Locks of a cluster: each shard has replicas of its own.

use lockable_runtime::Locker;
use lockable_tests::cluster::slot;
use lockable_tests::sections::is_clean_everywhere;
use lockable_tests::{Cluster, Server};

use super::confirmed;
use crate::support::LONG;

/// Goal: a lock is confirmed on its shard, also while its slot moves key by key, wherever its key is.
/// Method: locks on both shards, of which one is moved between two renewals. Then the replica of that shard is stopped,
/// as that of the first one when the lock was there.
#[tokio::test]
async fn a_lock_is_confirmed_on_its_shard() {
    let cluster = Cluster::builder().shards(2).replicas(2).steady().start();
    cluster.wait_until_healthy();
    let locker = confirmed(&cluster.url()).connect().await.unwrap();
    let masters: Vec<_> = cluster.first_masters().collect();
    for master in &masters {
        let before = waits(master);
        hold(&locker, &name_at(&cluster, master)).await;
        assert!(waits(master) > before);
    }
    let [from, to] = masters[..] else { panic!("two masters") };
    let name = name_at(&cluster, from);
    let guard = locker.lock(&name).acquire().await.unwrap();
    let key = guard.lease().key().as_str().to_owned();
    cluster.begin_move(slot(&key), to);
    guard.lease().extend(2 * LONG).await.unwrap();
    let there = waits(to);
    assert!(cluster.move_key(&key).unwrap());
    let replica = cluster.replica_of(&format!("disLock:{}", name_at(&cluster, to)));
    replica.pause();
    assert!(guard.lease().extend(3 * LONG).await.unwrap_err().is_unavailable());
    replica.resume();
    guard.lease().extend(3 * LONG).await.unwrap();
    assert!(waits(to) > there, "the target has it now");
    cluster.end_move(slot(&key)).unwrap();
    guard.lease().extend(4 * LONG).await.unwrap();
    guard.release().await.unwrap();
    let replica = cluster.replica_of(&key);
    replica.pause();
    assert!(locker.lock(&name).acquire().await.unwrap_err().is_unavailable());
    replica.resume();
    hold(&locker, &name).await;
    cluster.wait_until_healthy();
    is_clean_everywhere(&cluster).await;
}

async fn hold(locker: &Locker, name: &str) {
    let guard = locker.lock(name).expire(LONG).renew().acquire().await.unwrap();
    guard.release().await.unwrap();
}

/// The name of a lock on this master.
fn name_at(cluster: &Cluster, master: &Server) -> String {
    cluster.name_at(master, "disLock:k").replacen("disLock:", "", 1)
}

fn waits(server: &Server) -> u64 {
    server.admin().command_calls("wait")
}
