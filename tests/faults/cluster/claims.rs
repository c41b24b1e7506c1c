//! A lock that was handed off, and is claimed while its slot moves.

use std::time::Duration;

use lockable_tests::cluster::slot;
use lockable_tests::{Cluster, Server, wait};

use crate::by_hand::ByHand;
use crate::support::{LIMIT, LONG, connect_ample};

/// Goal: the lease of a call is never longer than its lock at the server.
/// Method: a lock is handed off for its first second, and the call, which is polled by hand, hears of that when half
/// of it is over. So it claims the lock; but its queue is gone, and the slot moves key by key, so that the claim is
/// made by commands of one key each.
#[tokio::test]
async fn a_claim_in_a_moving_slot_lengthens_the_lock() {
    let cluster = Cluster::builder().shards(2).replicas(0).steady().start();
    let [from, to] = cluster.first_masters().collect::<Vec<_>>()[..] else { unreachable!() };
    let name = cluster.name_at(from, "disLock:");
    let key = name.trim_start_matches("disLock:").to_owned();
    let (holder, process) =
        (connect_ample(&cluster.url()).await, connect_ample(&cluster.url()).await);
    let guard = holder.lock(&key).acquire().await.unwrap();
    let (admin, mut call) = (from.admin(), Box::pin(process.lock(&key).wait(LONG).acquire()));
    tokio::select! {
        _ = &mut call => panic!("another process has the lock"),
        () = wait::until_async(LIMIT, async || !admin.keys("lockable:queue:*").is_empty()) => {}
    }
    let by_hand = ByHand::default();
    assert!(by_hand.poll(call.as_mut()).is_pending());
    cluster.begin_move(slot(&name), to);
    guard.release().await.unwrap();
    by_hand.woken().await;
    wait::until_async(LIMIT, async || left_at([from, to], &name) <= 500).await;
    assert!(by_hand.poll(call.as_mut()).is_pending(), "the turn is claimed");
    let guard = wait::ends(call).await.unwrap();
    // What is left of the lease is read first, so that the lock's rest may only be smaller.
    let (counted, left) = (guard.lease().remaining(), left_at([from, to], &name));
    let left = Duration::from_millis(left.try_into().expect("the lock is there, with an end"));
    assert!(counted > LONG / 2, "{counted:?} of a whole lease");
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
