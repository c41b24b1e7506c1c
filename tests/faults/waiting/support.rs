//! What the tests of waiting share: waiters, what they cost, and who is in the queue.

use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Pace, Peer, Server, wait};
use tokio::task::JoinHandle;

use crate::support::{KEY, LIMIT};

/// The companion key of the queue, in which the waiters of `k` are stored.
pub(crate) const QUEUE: &str = "lockable:queue:{disLock:k}";

/// What is due within about a round trip, as a [`Pace`] measures it; the recheck comes later.
pub(crate) const AT_ONCE: Duration = Duration::from_millis(700);

/// What the recheck, or a short grant that no one takes, may cost.
pub(crate) const RECHECK: Duration = Duration::from_secs(2);

/// A lock that is waited for by a task of its own.
pub(crate) fn waiter(locker: &Locker) -> JoinHandle<LockGuard> {
    waiter_for(locker, LIMIT)
}

pub(crate) fn waiter_for(locker: &Locker, limit: Duration) -> JoinHandle<LockGuard> {
    let request = locker.lock("k").wait_at_most(limit);
    tokio::spawn(async move { request.acquire().await.unwrap() })
}

/// The output, which must come within the bound; says how long it took.
pub(crate) async fn within<F: Future>(what: &str, bound: Duration, future: F) -> F::Output {
    let pace = Pace::start();
    let output = tokio::time::timeout(3 * LIMIT, future).await.expect("it comes at all");
    let elapsed = pace.elapsed();
    println!("{what}: {elapsed:?}");
    assert!(elapsed <= bound, "{what}: it took {elapsed:?} of {bound:?}");
    output
}

/// The waiter is served within the bound, and releases.
pub(crate) async fn is_served(what: &str, bound: Duration, waiter: JoinHandle<LockGuard>) {
    let guard = within(what, bound, waiter).await.unwrap();
    assert!(guard.is_held());
    guard.release().await.unwrap();
}

/// Waits until `count` processes are in the queue of `k`.
pub(crate) async fn queued(server: &Server, count: usize) {
    let admin = server.admin();
    wait::until_async(LIMIT, async || admin.command::<usize>(&["LLEN", QUEUE]) == count).await;
}

/// In the end the lock has no holder, and the queue is empty.
pub(crate) async fn is_over(server: &Server) {
    let admin = server.admin();
    let is_over = async || admin.command::<usize>(&["EXISTS", KEY, QUEUE]) == 0;
    within("it is over", AT_ONCE, wait::until_async(LIMIT, is_over)).await;
}

/// A process that reads its orders from its input; see `wait_worker.rs`.
pub(crate) fn process(url: &str) -> Peer {
    let peer = Peer::start(env!("CARGO_BIN_EXE_wait_worker"), [url]);
    assert_eq!(peer.hear(), "ready");
    peer
}
