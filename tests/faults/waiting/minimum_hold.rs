//! What becomes of a lock at the end of its minimum hold, while others wait for it.

use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Server, unless_busy, wait};
use rstest::rstest;
use tokio::task::JoinHandle;

use super::support::{
    connect_rechecking, held_beside, in_queue, is_over, places, queued, rechecking, release_last,
    server_and, waiter,
};
use crate::support::{KEY, LIMIT, LONG, now};

/// Long enough that a waiter is in the queue before it ends.
const MINIMUM: Duration = Duration::from_millis(600);

/// How long the lock is kept for those who wait, which a process that stands still misses.
const FOR_WAITERS: Duration = Duration::from_secs(1);

/// Goal: the one who waits has the lock when the minimum is over, not before, and no newcomer overtakes.
/// Method: newcomers ask without a pause, from when the waiter has its place until it has the lock.
#[rstest]
#[case::since_the_hold(true)]
#[case::since_the_release(false)]
#[tokio::test]
async fn one_who_waits_comes_before_newcomers(#[case] is_before_release: bool) {
    let (server, locker) = server_and(rechecking).await;
    let (other, newcomer) =
        (connect_rechecking(&server.url()).await, connect_rechecking(&server.url()).await);
    let (admin, mut early) = (server.admin(), None);
    for _ in 0..3 {
        let start = now();
        let guard = hold(&other, MINIMUM).await;
        if is_before_release {
            early = Some(in_queue(&server, &locker).await);
        }
        guard.release().await.unwrap();
        let waiter = early.take().unwrap_or_else(|| waiter(&locker));
        wait::until_async(LIMIT, async || places(&admin) > 0 || waiter.is_finished()).await;
        let newcomers = async {
            while !waiter.is_finished() {
                if let Some(guard) = unless_busy(newcomer.lock("k").try_acquire().await) {
                    let has_lapsed = start.elapsed() >= MINIMUM + FOR_WAITERS;
                    assert!(waiter.is_finished() || has_lapsed, "a newcomer has the lock");
                    guard.release().await.unwrap();
                }
            }
        };
        wait::ends(newcomers).await;
        assert!(start.elapsed() >= MINIMUM);
        waiter.await.unwrap().release().await.unwrap();
    }
    is_over(&server).await;
}

#[tokio::test]
async fn a_waiter_with_a_minimum_hold_keeps_it() {
    let (server, locker, holder) = held_beside(rechecking).await;
    let first = tokio::spawn(locker.lock("k").wait(LONG).min_hold(MINIMUM).acquire());
    queued(&server, 1).await;
    let second = waiter(&locker);
    // The minimum begins later than this, between the grant and its arrival here.
    let start = now();
    holder.release().await.unwrap();
    first.await.unwrap().unwrap().release().await.unwrap();
    let guard = wait::ends(second).await.unwrap();
    assert!(start.elapsed() >= MINIMUM);
    release_last(&server, guard).await;
}

#[tokio::test]
async fn an_inspection_leaves_out_the_waiters_second() {
    let (server, locker, _waiter) = kept(LONG / 10).await;
    let admin = server.admin();
    assert!(admin.command::<bool>(&["PEXPIRE", KEY, "300000"]));
    let held = locker.inspect("k").await.unwrap().unwrap();
    assert!(held.remaining().unwrap() <= Duration::from_secs(299), "{held:?}");
    assert!(admin.get(KEY).unwrap().starts_with('='));
}

#[tokio::test]
async fn a_waiter_who_leaves_makes_it_no_longer() {
    let (server, _locker, waiter) = kept(LONG / 10).await;
    let admin = server.admin();
    assert!(admin.get(KEY).unwrap().starts_with('='));
    waiter.abort();
    queued(&server, 0).await;
    assert!(admin.get(KEY).unwrap().starts_with('~'));
    assert!((1..=30_000).contains(&admin.pttl(KEY)), "{}", admin.pttl(KEY));
}

/// Its last second, in which the line asks again, is not taken for the one that a minimum hold leaves to those
/// who wait.
#[rstest]
#[tokio::test]
async fn the_value_of_another_program_is_no_mark(
    #[values("=theirs", "=0123456789abcdef.x", "~0123456789abcde.1")] value: &str,
) {
    let (server, locker) = server_and(rechecking).await;
    let (start, lease) = (now(), Duration::from_secs(2));
    server.admin().command::<()>(&["SET", KEY, value, "PX", "2000"]);
    let waiter = waiter(&locker);
    let guard = wait::ends(waiter).await.unwrap();
    // The server counts in milliseconds.
    assert!(start.elapsed() + Duration::from_millis(2) > lease, "{:?}", start.elapsed());
    release_last(&server, guard).await;
}

async fn hold(locker: &Locker, least: Duration) -> LockGuard {
    locker.lock("k").wait(LONG).min_hold(least).acquire().await.unwrap()
}

/// A lock that was released, stays taken for so long from its grant, and is waited for.
async fn kept(least: Duration) -> (Server, Locker, JoinHandle<LockGuard>) {
    let (server, locker) = server_and(rechecking).await;
    let guard = hold(&connect_rechecking(&server.url()).await, least).await;
    let waiter = in_queue(&server, &locker).await;
    guard.release().await.unwrap();
    (server, locker, waiter)
}
