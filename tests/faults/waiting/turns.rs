//! What the holder of a handed-off lock has: its whole lease, its minimum, and its release.

use std::time::Duration;

use lockable_runtime::{LockGuard, LockRequest};
use lockable_tests::{Server, wait};
use tokio::task::{JoinHandle, yield_now};

use super::support::{
    connect, held, held_beside, held_beside_proxy, impatient_behind_proxy, in_queue, is_over,
    is_served_last, queued, rechecking, release_last, released, renewed, server_and, waiter,
};
use crate::support::{KEY, LIMIT, LONG, elapse, usable};

#[tokio::test]
async fn a_handed_off_lock_has_its_whole_lease() {
    let is_kept = async || {
        let (server, guard) = handed_off(|lock| lock.expire(seconds(20))).await;
        has_twenty_seconds(&server, guard).await
    };
    wait::until_async(LIMIT, is_kept).await;
}

#[tokio::test]
async fn a_local_waiter_has_a_whole_lease_too() {
    let is_kept = async || {
        let (server, locker, holder) = held().await;
        let first = in_queue(&server, &locker).await;
        let second = tokio::spawn(locker.lock("k").expire(seconds(20)).wait(LONG).acquire());
        holder.release().await.unwrap();
        released(&first.await.unwrap().release().await);
        let second = wait::ends(second).await.unwrap().unwrap();
        has_twenty_seconds(&server, second).await
    };
    wait::until_async(LIMIT, is_kept).await;
}

/// Whether the short grant becomes the whole lease before it ends. A machine that stands still for a second loses it;
/// a grant that is never claimed is lost each time.
async fn has_twenty_seconds(server: &Server, guard: LockGuard) -> bool {
    let is_longer = || guard.lease().remaining() > seconds(15);
    wait::until_async(LIMIT, async || is_longer() || guard.lease().is_lost()).await;
    let is_longer = is_longer();
    assert!(!is_longer || server.admin().pttl(KEY) > 15_000);
    release_last(server, guard).await;
    is_longer
}

#[tokio::test]
async fn a_handed_off_lock_is_renewed() {
    let is_kept = async || {
        let (server, guard) = handed_off(|lock| lock.expire(seconds(3)).renew()).await;
        // The first renewal claims the whole lease.
        for _ in 0..3 {
            renewed(&guard).await;
        }
        let is_held = guard.lease().is_held();
        release_last(&server, guard).await;
        is_held
    };
    wait::until_async(LIMIT, is_kept).await;
}

/// Method: the claim is held back until another client has the lock.
#[tokio::test]
async fn a_claim_that_is_refused_stops_the_body() {
    let (server, proxy, locker, holder) = held_beside_proxy().await;
    let admin = server.admin();
    let request = locker.lock("k").wait(LONG);
    let call = tokio::spawn(request.run(std::future::pending::<()>()));
    queued(&server, 1).await;
    proxy.hold_requests();
    holder.release().await.unwrap();
    admin.set(KEY, "theirs");
    proxy.release_requests();
    tokio::select! {
        outcome = wait::ends(call) => {
            assert!(outcome.unwrap().unwrap_err().is_lost());
        }
        // A machine that hears late of the grant claims it before the body begins, and waits again.
        () = queued(&server, 1) => {}
    }
    assert_eq!(admin.get(KEY).as_deref(), Some("theirs"));
}

#[tokio::test]
async fn a_release_whose_outcome_is_unknown_serves_the_waiters() {
    let (server, proxy, locker) = impatient_behind_proxy().await;
    let guard = locker.lock("k").acquire().await.unwrap();
    let own = in_queue(&server, &locker).await;
    let other = in_queue(&server, &connect(&server.url()).await).await;
    proxy.hold_open_replies();
    assert!(guard.release().await.unwrap_err().is_unavailable());
    let serve = async |waiter: JoinHandle<LockGuard>| drop(waiter.await.unwrap());
    wait::ends(async { tokio::join!(serve(own), serve(other)) }).await;
    is_over(&server).await;
}

/// The repeated release finds the next holder, who is left alone. Where a command releases, it is the repeated one that
/// hands off: the script was to follow the reply that is held back.
#[tokio::test]
async fn an_unanswered_hand_off_is_no_loss() {
    let (server, proxy, locker) = impatient_behind_proxy().await;
    let guard = locker.lock("k").acquire().await.unwrap();
    let next = in_queue(&server, &connect(&server.url()).await).await;
    proxy.hold_open_replies();
    let cut = async {
        let next = wait::ends(next).await.unwrap();
        proxy.wait_reply_held(LIMIT).await;
        proxy.cut();
        next
    };
    let (released, next) = tokio::join!(guard.release(), cut);
    assert!(released.unwrap_err().is_unavailable());
    release_last(&server, next).await;
}

#[tokio::test]
async fn a_guard_that_is_dropped_serves_the_waiters() {
    let (server, locker, holder) = held().await;
    let (one, two) = (waiter(&locker), waiter(&locker));
    queued(&server, 1).await;
    drop(holder);
    let guard = wait::ends(one).await.unwrap();
    // Longer than a turn lasts.
    elapse(Duration::from_millis(20)).await;
    drop(guard);
    is_served_last(&server, two).await;
}

/// The first finds the lock free when it asks again, and so has a minute at once, which is passed to
/// the next waiter of this process.
#[tokio::test]
async fn a_passed_on_lease_is_no_longer_than_requested() {
    let (server, locker) = server_and(rechecking).await;
    server.admin().set(KEY, "another client");
    let first = in_queue(&server, &locker).await;
    let next = tokio::spawn(locker.lock("k").expire(seconds(2)).wait(LONG).acquire());
    // A call that finds others in the line lines up behind them at its first poll.
    yield_now().await;
    server.admin().del(KEY);
    let first = wait::ends(first).await.unwrap();
    // It is passed on within the process, unless the machine takes longer for this step than a turn lasts.
    first.release().await.unwrap();
    let next = next.await.unwrap().unwrap();
    assert!(next.lease().is_held() && next.lease().remaining() <= usable(seconds(2)), "{next:?}");
    release_last(&server, next).await;
}

/// Method: the test waits until the short grant is over, and the lease that was requested.
#[tokio::test]
async fn a_lease_is_made_longer_during_a_turn() {
    let (server, guard) = handed_off(|lock| lock.expire(seconds(1))).await;
    if let Err(error) = guard.lease().extend(seconds(30)).await {
        return released(&Err(error));
    }
    assert!(guard.lease().remaining() > seconds(20) && server.admin().pttl(KEY) > 20_000);
    elapse(Duration::from_millis(1_200)).await;
    assert!(guard.lease().is_held() && guard.lease().remaining() > seconds(15), "{guard:?}");
    release_last(&server, guard).await;
}

/// The recheck asks for a place during a long turn, and no one waits for that place in the end.
#[tokio::test]
async fn a_place_requested_during_a_turn_ends() {
    let (server, locker, holder) = held_beside(rechecking).await;
    let first = in_queue(&server, &locker).await;
    let second = waiter(&locker);
    holder.release().await.unwrap();
    let first = wait::ends(first).await.unwrap();
    queued(&server, 1).await;
    second.abort();
    drop(second.await);
    wait::ends(queued(&server, 0)).await;
    release_last(&server, first).await;
}

#[tokio::test]
async fn a_turn_without_its_lock_leaves_the_next_alone() {
    let (server, locker, holder) = held_beside(rechecking).await;
    let first = in_queue(&server, &locker).await;
    let (second, third) = (waiter(&locker), waiter(&locker));
    holder.release().await.unwrap();
    let first = wait::ends(first).await.unwrap();
    server.admin().del(KEY);
    let second = wait::ends(second).await.unwrap();
    let owner = server.admin().get(KEY);
    drop(first.release().await);
    elapse(seconds(1)).await;
    assert!(second.lease().is_held());
    assert_eq!(server.admin().get(KEY), owner);
    second.release().await.unwrap();
    is_served_last(&server, third).await;
}

/// A lock that a waiter has from another process's release.
async fn handed_off(request: impl FnOnce(LockRequest) -> LockRequest) -> (Server, LockGuard) {
    let (server, locker, holder) = held().await;
    let waiter = tokio::spawn(request(locker.lock("k")).wait(LONG).acquire());
    queued(&server, 1).await;
    holder.release().await.unwrap();
    let guard = wait::ends(waiter).await.unwrap().unwrap();
    (server, guard)
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}
