//! Locks whose keys differ by a hash tag alone.

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Server, wait};
use tokio::task::JoinHandle;

use super::support::{AT_ONCE, is_served};
use crate::support::{LIMIT, patient};

/// Goal: the waiters of two locks are not in one queue, where each would be granted the other's lock.
/// Method: both locks are held, each has a waiter, and they are released in the order in which the
/// waiters did not come.
#[tokio::test]
async fn a_key_and_its_hash_tag_have_separate_queues() {
    let server = Server::start();
    let admin = server.admin();
    let locker = || patient(&server.url()).prefix("").connect();
    let (holder, one, other) =
        (locker().await.unwrap(), locker().await.unwrap(), locker().await.unwrap());
    let plain = holder.lock("user").acquire().await.unwrap();
    let tagged = holder.lock("{user}").acquire().await.unwrap();
    assert_eq!(admin.keys("lockable:fence:*").len(), 1);
    let queues = || admin.keys("lockable:queue:*").len();
    let for_plain = waiter(&one, "user");
    wait::until_async(LIMIT, async || queues() == 1).await;
    let for_tagged = waiter(&other, "{user}");
    wait::until_async(LIMIT, async || queues() == 2).await;
    admin.reset_statistics();
    tagged.release().await.unwrap();
    is_served("behind the tag", AT_ONCE, for_tagged).await;
    assert!(plain.is_held() && !for_plain.is_finished());
    plain.release().await.unwrap();
    is_served("behind the key", AT_ONCE, for_plain).await;
    assert_eq!(admin.command_calls("publish"), 2);
}

fn waiter(locker: &Locker, key: &'static str) -> JoinHandle<LockGuard> {
    let request = locker.lock(key).wait_at_most(LIMIT);
    tokio::spawn(async move { request.acquire().await.unwrap() })
}
