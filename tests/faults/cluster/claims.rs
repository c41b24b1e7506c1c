//! A lock that was handed off, and is claimed while its slot moves.

use std::thread;
use std::time::Duration;

use lockable_runtime::Locker;
use lockable_tests::cluster::slot;
use lockable_tests::{Cluster, Server, wait};
use tokio::runtime::Builder;

use crate::support::{LIMIT, LONG, connect_ample};

/// Goal: the lease of a call is never longer than its lock at the server.
/// Method: a lock is handed off for its first second by a message that nothing dates, because another runtime of the
/// process has just connected to the node. So the call claims the lock; but its queue is gone, and the slot moves
/// key by key, so that the claim is made by commands of one key each.
#[tokio::test]
async fn a_claim_in_a_moving_slot_lengthens_the_lock() {
    let cluster = Cluster::builder().shards(2).replicas(0).steady().start();
    let [from, to] = cluster.first_masters().collect::<Vec<_>>()[..] else { unreachable!() };
    let name = cluster.name_at(from, "disLock:");
    let key = name.trim_start_matches("disLock:").to_owned();
    let (holder, process) =
        (connect_ample(&cluster.url()).await, connect_ample(&cluster.url()).await);
    let guard = holder.lock(&key).acquire().await.unwrap();
    let waiting = tokio::spawn({
        let request = process.lock(&key).wait(LONG);
        async move { request.acquire().await.unwrap() }
    });
    let admin = from.admin();
    wait::until_async(LIMIT, async || !admin.keys("lockable:queue:*").is_empty()).await;
    cluster.begin_move(slot(&name), to);
    connect_another_runtime(&process, cluster.name_at(from, "disLock:other"));
    guard.release().await.unwrap();
    let guard = waiting.await.unwrap();
    // On a busy machine the call may have asked once more, which dates the message: then it claims in the background.
    wait::until_async(LIMIT, async || guard.lease().remaining() > LONG / 2).await;
    // What is left of the lease is read first, so that the lock's rest may only be smaller.
    let (counted, left) = (guard.lease().remaining(), left_at([from, to], &name));
    let left = Duration::from_millis(left.try_into().expect("the lock is there, with an end"));
    assert!(counted <= left, "{counted:?} of a lock that lasts for {left:?}");
    guard.release().await.unwrap();
    cluster.end_move(slot(&name)).unwrap();
}

/// What is left of the lock, which may be a new one at the node to which its slot moves.
fn left_at([from, to]: [&Server; 2], name: &str) -> i64 {
    let left = from.admin().try_command(&["PTTL", name]);
    left.ok().and_then(|left| redis::from_redis_value(left).ok()).unwrap_or_else(|| {
        let admin = to.admin();
        admin.command::<()>(&["ASKING"]);
        admin.pttl(name)
    })
}

/// Has the process open one more connection to the node of that lock.
fn connect_another_runtime(process: &Locker, name: String) {
    let process = process.clone();
    let using = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let key = name.trim_start_matches("disLock:");
        runtime.block_on(process.lock(key).try_run(async {})).unwrap().unwrap();
    });
    using.join().unwrap();
}
