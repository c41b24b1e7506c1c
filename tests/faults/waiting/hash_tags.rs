//! Locks whose keys differ by a hash tag alone, and namespaces that look like other parts of a name.

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Server, wait};
use tokio::task::JoinHandle;

use super::support::{ample, is_served, rechecking};
use crate::support::{LIMIT, LONG};

/// Goal: the waiters of two locks are not in one queue, where each would be granted the other's lock.
/// Method: both locks are held, each has a waiter, and they are released in the order in which the
/// waiters did not come.
#[tokio::test]
async fn a_key_and_its_hash_tag_have_separate_queues() {
    let server = Server::start();
    let admin = server.admin();
    let locker = || ample(&server.url()).prefix("").connect();
    let (holder, one, other) =
        (locker().await.unwrap(), locker().await.unwrap(), locker().await.unwrap());
    let plain = holder.lock("user").acquire().await.unwrap();
    let tagged = holder.lock("{user}").acquire().await.unwrap();
    assert_eq!(admin.keys("lockable:fence:*").len(), 1);
    let for_plain = waiter(&one, "user");
    queues(&server, "lockable", 1).await;
    let for_tagged = waiter(&other, "{user}");
    queues(&server, "lockable", 2).await;
    admin.reset_statistics();
    tagged.release().await.unwrap();
    is_served(for_tagged).await;
    assert!(plain.lease().is_held() && !for_plain.is_finished());
    plain.release().await.unwrap();
    is_served(for_plain).await;
    assert_eq!(admin.command_calls("publish"), 2);
}

/// Goal: grants are published in the namespace of the lockers, whatever it and the keys look like.
#[tokio::test]
async fn locks_are_handed_off_in_any_namespace() {
    let server = Server::start();
    for namespace in ["shop:queue::lockable", ":queue:", "%s%1"] {
        let locker = || ample(&server.url()).prefix("").namespace(namespace).connect();
        let (holder, other) = (locker().await.unwrap(), locker().await.unwrap());
        for key in ["user", "{user}", "a:queue:b", "a:queue::{b}c"] {
            let guard = holder.lock(key).acquire().await.unwrap();
            let waiter = waiter(&other, key);
            queues(&server, namespace, 1).await;
            guard.release().await.unwrap();
            is_served(waiter).await;
        }
    }
}

#[tokio::test]
async fn lockers_of_two_namespaces_exclude_each_other() {
    let server = Server::start();
    let locker = |namespace| rechecking(&server.url()).namespace(namespace).connect();
    let (one, other) = (locker("lockable").await.unwrap(), locker("other").await.unwrap());
    let guard = one.lock("k").acquire().await.unwrap();
    assert!(other.lock("k").try_acquire().await.unwrap_err().is_busy());
    let waiter = waiter(&other, "k");
    queues(&server, "other", 1).await;
    guard.release().await.unwrap();
    is_served(waiter).await;
}

fn waiter(locker: &Locker, key: &'static str) -> JoinHandle<LockGuard> {
    let request = locker.lock(key).wait(LONG);
    tokio::spawn(async move { request.acquire().await.unwrap() })
}

async fn queues(server: &Server, namespace: &str, count: usize) {
    let (admin, names) = (server.admin(), format!("{namespace}:queue:*"));
    wait::until_async(LIMIT, async || admin.keys(&names).len() == count).await;
}
