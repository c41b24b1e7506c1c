//! What the holder of a handed-off lock has: its whole lease, its minimum, and its release.

use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Server, wait};
use tokio::task::yield_now;

use super::support::{AT_ONCE, RECHECK, is_over, is_served, queued, waiter, within};
use crate::support::{
    COMMAND, KEY, LIMIT, connect, elapse, impatient, is_unsure, now, server_and_proxy, usable,
};

#[tokio::test]
async fn a_handed_off_lock_has_its_whole_lease() {
    let (server, guard) = handed_off(|locker| locker.lock("k").expire(seconds(20))).await;
    let admin = server.admin();
    let is_claimed = wait::until_async(LIMIT, async || admin.pttl(KEY) > 15_000);
    within("claimed", seconds(1), is_claimed).await;
    elapse(Duration::from_millis(1_500)).await;
    assert!(guard.is_held() && guard.remaining() > seconds(15), "{guard:?}");
    guard.release().await.unwrap();
    is_over(&server).await;
}

#[tokio::test]
async fn a_handed_off_lock_is_renewed() {
    let (server, guard) = handed_off(|locker| locker.lock("k").expire(seconds(3)).renew()).await;
    elapse(seconds(7)).await;
    assert!(guard.is_held() && server.admin().pttl(KEY) > 900, "{guard:?}");
    guard.release().await.unwrap();
    is_over(&server).await;
}

/// Method: the claim is held back until another client has the lock.
#[tokio::test]
async fn a_claim_that_is_refused_stops_the_body() {
    let (server, proxy) = server_and_proxy();
    let holder = connect(&server.url()).await.lock("k").acquire().await.unwrap();
    let (admin, locker) = (server.admin(), connect(&proxy.url()).await);
    let request = locker.lock("k").wait_at_most(LIMIT);
    let call = tokio::spawn(request.run(std::future::pending::<()>()));
    queued(&server, 1).await;
    proxy.hold_requests();
    let owner = admin.get(KEY);
    holder.release().await.unwrap();
    wait::until_async(LIMIT, async || admin.get(KEY) != owner).await;
    admin.set(KEY, "theirs");
    proxy.release_requests();
    let bound = Duration::from_millis(334 + 63) + AT_ONCE;
    let error = within("a refused claim", bound, call).await.unwrap().unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert_eq!(admin.get(KEY).as_deref(), Some("theirs"));
}

#[tokio::test]
async fn the_next_waiter_comes_after_the_minimum_hold() {
    let server = Server::start();
    let (locker, other) = (connect(&server.url()).await, connect(&server.url()).await);
    let minimum = Duration::from_millis(700);
    let start = now();
    let guard = other.lock("k").min_hold(minimum).acquire().await.unwrap();
    let (one, two) = (waiter(&locker), waiter(&other));
    queued(&server, 2).await;
    guard.release().await.unwrap();
    let serve = async |waiter: tokio::task::JoinHandle<LockGuard>| {
        let guard = waiter.await.unwrap();
        assert!(now() - start >= minimum);
        guard.release().await.unwrap();
    };
    let both = async { tokio::join!(serve(one), serve(two)) };
    within("two behind a minimum of 700 ms", minimum + RECHECK, both).await;
    is_over(&server).await;
}

#[tokio::test]
async fn a_waiter_with_a_minimum_hold_keeps_it() {
    let (server, locker, holder) = held().await;
    let minimum = Duration::from_millis(500);
    let first = tokio::spawn(locker.lock("k").wait_at_most(LIMIT).min_hold(minimum).acquire());
    queued(&server, 1).await;
    let second = waiter(&locker);
    holder.release().await.unwrap();
    let guard = within("handed off", AT_ONCE, first).await.unwrap().unwrap();
    let start = now();
    guard.release().await.unwrap();
    let guard = within("behind a minimum of 500 ms", minimum + RECHECK, second).await.unwrap();
    assert!(now() - start >= minimum * 9 / 10);
    guard.release().await.unwrap();
    is_over(&server).await;
}

#[tokio::test]
async fn a_release_whose_outcome_is_unknown_serves_the_waiters() {
    let (server, proxy) = server_and_proxy();
    let holder = impatient(&proxy.url()).connect().await.unwrap();
    let (one, two) = (waiter(&connect(&server.url()).await), waiter(&connect(&server.url()).await));
    let guards = within("both", LIMIT, async {
        // The waiter that came first releases over the proxy in its turn.
        one.await.unwrap().release().await.unwrap();
        two.await.unwrap().release().await.unwrap();
        holder.lock("k").wait_at_most(LIMIT).acquire().await.unwrap()
    })
    .await;
    let own = waiter(&holder);
    queued(&server, 1).await;
    let other = waiter(&connect(&server.url()).await);
    queued(&server, 2).await;
    proxy.hold_open_replies();
    assert!(guards.release().await.unwrap_err().is_unavailable());
    let serve = async |waiter: tokio::task::JoinHandle<LockGuard>| {
        let guard = waiter.await.unwrap();
        drop(guard);
    };
    let bound = 4 * COMMAND + 2 * RECHECK;
    within("unknown release", bound, async { tokio::join!(serve(own), serve(other)) }).await;
    is_over(&server).await;
}

/// The repeated release finds the next holder, who is left alone.
#[tokio::test]
async fn an_unanswered_hand_off_is_no_loss() {
    let (server, proxy) = server_and_proxy();
    let guard = connect(&proxy.url()).await.lock("k").acquire().await.unwrap();
    let next = waiter(&connect(&server.url()).await);
    queued(&server, 1).await;
    proxy.hold_open_replies();
    let cut = async {
        let next = within("handed off", AT_ONCE, next).await.unwrap();
        proxy.wait_reply_held(LIMIT).await;
        proxy.cut();
        next
    };
    let (released, next) = tokio::join!(guard.release(), cut);
    is_unsure(&released.unwrap_err());
    next.release().await.unwrap();
    is_over(&server).await;
}

#[tokio::test]
async fn a_guard_that_is_dropped_serves_the_waiters() {
    let (server, locker, holder) = held().await;
    let (one, two) = (waiter(&locker), waiter(&locker));
    queued(&server, 1).await;
    drop(holder);
    let guard = within("dropped guard", AT_ONCE, one).await.unwrap();
    elapse(Duration::from_millis(20)).await;
    drop(guard);
    is_served("dropped guard of a turn", AT_ONCE, two).await;
    is_over(&server).await;
}

/// The first finds the lock free when it asks again, and so has a minute at once, which is passed to
/// the next waiter of this process.
#[tokio::test]
async fn a_passed_on_lease_is_no_longer_than_requested() {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    server.admin().set(KEY, "another client");
    let first = waiter(&locker);
    queued(&server, 1).await;
    let next = tokio::spawn(locker.lock("k").expire(seconds(2)).wait_at_most(LIMIT).acquire());
    // A call that finds others in the line lines up behind them at its first poll.
    yield_now().await;
    server.admin().del(KEY);
    let first = within("the first", RECHECK, first).await.unwrap();
    // It is passed on within the process, unless the machine takes longer for this step than a turn lasts.
    first.release().await.unwrap();
    let next = next.await.unwrap().unwrap();
    assert!(next.is_held() && next.remaining() <= usable(seconds(2)), "{next:?}");
    next.release().await.unwrap();
    is_over(&server).await;
}

#[tokio::test]
async fn a_lease_is_made_longer_during_a_turn() {
    let (server, guard) = handed_off(|locker| locker.lock("k").expire(seconds(2))).await;
    guard.extend(seconds(30)).await.unwrap();
    assert!(guard.remaining() > seconds(28) && server.admin().pttl(KEY) > 28_000);
    elapse(seconds(3)).await;
    assert!(guard.is_held() && guard.remaining() > seconds(20), "{guard:?}");
    guard.release().await.unwrap();
    is_over(&server).await;
}

#[tokio::test]
async fn a_local_waiter_has_a_whole_lease_too() {
    let (server, locker, holder) = held().await;
    let first = waiter(&locker);
    queued(&server, 1).await;
    let long = locker.lock("k").expire(seconds(20)).wait_at_most(LIMIT);
    let second = tokio::spawn(long.acquire());
    holder.release().await.unwrap();
    let first = within("first", AT_ONCE, first).await.unwrap();
    first.release().await.unwrap();
    let second = within("second", AT_ONCE, second).await.unwrap().unwrap();
    elapse(Duration::from_millis(1_500)).await;
    assert!(second.is_held() && second.remaining() > seconds(15), "{second:?}");
    assert!(server.admin().pttl(KEY) > 15_000);
    second.release().await.unwrap();
    is_over(&server).await;
}

/// The recheck asks for a place during a long turn, and no one waits for that place in the end.
#[tokio::test]
async fn a_place_requested_during_a_turn_ends() {
    let (server, locker, holder) = held().await;
    let first = waiter(&locker);
    queued(&server, 1).await;
    let second = waiter(&locker);
    holder.release().await.unwrap();
    let first = within("first", AT_ONCE, first).await.unwrap();
    queued(&server, 1).await;
    second.abort();
    drop(second.await);
    within("left during a turn", AT_ONCE, queued(&server, 0)).await;
    assert!(first.is_held());
    first.release().await.unwrap();
    is_over(&server).await;
}

#[tokio::test]
async fn a_turn_without_its_lock_leaves_the_next_alone() {
    let (server, locker, holder) = held().await;
    let first = waiter(&locker);
    queued(&server, 1).await;
    let (second, third) = (waiter(&locker), waiter(&locker));
    holder.release().await.unwrap();
    let first = within("first", AT_ONCE, first).await.unwrap();
    server.admin().del(KEY);
    let second = within("after the lock was deleted", RECHECK, second).await.unwrap();
    let owner = server.admin().get(KEY);
    drop(first.release().await);
    elapse(Duration::from_millis(1_500)).await;
    assert!(second.is_held());
    assert_eq!(server.admin().get(KEY), owner);
    second.release().await.unwrap();
    is_served("third", AT_ONCE, third).await;
    is_over(&server).await;
}

/// A lock that a waiter has from another process's release.
async fn handed_off(
    request: impl FnOnce(&Locker) -> lockable_runtime::LockRequest,
) -> (Server, LockGuard) {
    let (server, locker, holder) = held().await;
    let waiter = tokio::spawn(request(&locker).wait_at_most(LIMIT).acquire());
    queued(&server, 1).await;
    holder.release().await.unwrap();
    let guard = within("handed off", AT_ONCE, waiter).await.unwrap().unwrap();
    (server, guard)
}

async fn held() -> (Server, Locker, LockGuard) {
    let server = Server::start();
    let (locker, other) = (connect(&server.url()).await, connect(&server.url()).await);
    let guard = other.lock("k").acquire().await.unwrap();
    (server, locker, guard)
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}
