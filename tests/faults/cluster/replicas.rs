//! Listeners at a replica, which its master does not count.

use lockable_tests::Cluster;
use lockable_tests::sections::is_clean_everywhere;
use redis::Client;

use crate::support::{LIMIT, connect_ample};

/// Goal: a waiter that a hand-off passes over hears of no turn. It would ask in vain.
/// Method: it listens at the replica, as one does that has subscribed while the master was failed over. What the
/// test publishes arrives there, though the master counts no one; nothing of the hand-off comes before it.
#[tokio::test]
async fn a_waiter_at_a_replica_hears_of_no_turn() {
    let cluster = Cluster::builder().shards(1).replicas(1).steady().start();
    let master = cluster.master_of("any");
    let (locker, admin) = (connect_ample(&cluster.url()).await, master.admin());
    let guard = locker.lock("k").acquire().await.unwrap();
    let fence = admin.keys("lockable:fence:*").remove(0);
    let tag = fence.strip_prefix("lockable:fence:").unwrap();
    let channel = format!("lockable:grant:{ORIGIN}:{tag}");
    let client = Client::open(cluster.replica_of("any").url()).unwrap();
    let mut listener = client.get_connection().unwrap();
    redis::cmd("SSUBSCRIBE").arg(&channel).exec(&mut listener).unwrap();
    let entry = format!("30000 {ORIGIN}.7");
    admin.command::<u64>(&["RPUSH", "lockable:queue:{disLock:k}", &entry]);
    guard.release().await.unwrap();
    assert_eq!(admin.get("disLock:k"), None);
    assert_eq!(admin.command::<u64>(&["SPUBLISH", &channel, LAST]), 0);
    listener.set_read_timeout(Some(LIMIT)).unwrap();
    let heard: Vec<String> = redis::from_redis_value(listener.recv_response().unwrap()).unwrap();
    assert_eq!(heard, ["smessage", &channel, LAST], "the first message");
    is_clean_everywhere(&cluster).await;
}

const ORIGIN: &str = "0123456789abcdef";
const LAST: &str = "this is the last message";
