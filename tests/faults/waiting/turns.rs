//! What the holder of a handed-off lock has: its whole lease, its minimum, and its release.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockable_runtime::{LockGuard, LockRequest};
use lockable_tests::{Admin, Server, wait};
use rstest::rstest;
use tokio::task::{JoinHandle, JoinSet, yield_now};

use super::late_queries::give_up;
use super::support::{
    connect, connect_rechecking, held, held_beside, held_beside_proxy, impatient_behind_proxy,
    in_queue, is_over, is_served_last, owners_in_queue, queued, rechecking, release_last, renewed,
    waiter,
};
use crate::support::{KEY, LIMIT, LONG, Runs, elapse, server_and_proxy, usable};

#[tokio::test]
async fn a_handed_off_lock_has_its_whole_lease() {
    let (server, guard) = handed_off(|lock| lock).await;
    counts_on_no_more_than_it_has(&server.admin(), &guard, LONG);
    release_last(&server, guard).await;
}

#[tokio::test]
async fn a_handed_off_lock_is_renewed() {
    let (server, guard) = handed_off(|lock| lock.expire(seconds(3)).renew()).await;
    for _ in 0..3 {
        renewed(&guard).await;
    }
    assert!(guard.lease().is_held());
    release_last(&server, guard).await;
}

/// Method: the query that the wake-up causes is held back until another client has the lock.
#[tokio::test]
async fn a_turn_that_another_client_has_taken_starts_no_body() {
    let (server, proxy) = server_and_proxy();
    let holder = connect(&server.url()).await.lock("k").acquire().await.unwrap();
    let locker = connect_rechecking(&proxy.url()).await;
    let (admin, runs) = (server.admin(), Runs::default());
    let body = |runs: Runs| async move { runs.add() };
    let call = tokio::spawn(locker.lock("k").wait(LONG).run(body(runs.clone())));
    queued(&server, 1).await;
    proxy.hold_requests();
    holder.release().await.unwrap();
    admin.set(KEY, "theirs");
    proxy.release_requests();
    queued(&server, 1).await;
    assert_eq!((runs.count(), admin.get(KEY).as_deref()), (0, Some("theirs")));
    admin.del(KEY);
    wait::ends(call).await.unwrap().unwrap();
    assert_eq!(runs.count(), 1);
    is_over(&server).await;
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

/// Goal: a lease that was passed on within the process is longer than that of its request, or than its lock.
#[tokio::test]
async fn a_passed_on_lease_is_no_longer_than_requested() {
    let (server, locker, holder) = held().await;
    let first = in_queue(&server, &locker).await;
    let lease = LONG / 2;
    let next = tokio::spawn(locker.lock("k").expire(lease).wait(LONG).acquire());
    // A call that finds others in the line lines up behind them at its first poll.
    yield_now().await;
    holder.release().await.unwrap();
    // It is passed on within the process, unless the machine takes longer for this step than a turn lasts.
    wait::ends(first).await.unwrap().release().await.unwrap();
    let next = wait::ends(next).await.unwrap().unwrap();
    counts_on_no_more_than_it_has(&server.admin(), &next, lease);
    release_last(&server, next).await;
}

/// Goal: a call with a longer lease than the one before it is passed a lock that ends too early, or is overtaken by a call
/// with a shorter one.
#[tokio::test]
async fn calls_with_leases_of_all_lengths_keep_their_order() {
    const LEASES: [u32; 6] = [1, 3, 2, 3, 1, 4];
    let (server, locker, holder) = held().await;
    let (ended, mut calls) = (Arc::new(Mutex::new(Vec::new())), JoinSet::new());
    for lease in LEASES {
        let request = locker.lock("k").expire(lease * LONG).wait(LONG);
        let (admin, ended) = (server.admin(), Arc::clone(&ended));
        calls.spawn(async move {
            let guard = request.acquire().await.unwrap();
            counts_on_no_more_than_it_has(&admin, &guard, lease * LONG);
            ended.lock().unwrap().push(lease);
            guard.release().await.unwrap();
        });
        // They line up in this order.
        yield_now().await;
    }
    queued(&server, 1).await;
    holder.release().await.unwrap();
    wait::ends(calls.join_all()).await;
    assert_eq!(*ended.lock().unwrap(), LEASES);
    is_over(&server).await;
}

/// Goal: a call has the lease of the one whose place it has taken over, or costs that place.
/// Method: a place in the queue is asked for by a call with a short lease, which leaves; before the wake-up, or when the
/// query that this causes is under way. Another process waits behind it.
#[rstest]
#[case::before_its_turn(false)]
#[case::during_its_query(true)]
#[tokio::test]
async fn a_place_is_asked_for_again_with_a_longer_lease(#[case] is_asked: bool) {
    let (server, proxy, locker, holder) = held_beside_proxy().await;
    let first = tokio::spawn(locker.lock("k").expire(LONG).wait(LONG).acquire());
    queued(&server, 1).await;
    let second = tokio::spawn(locker.lock("k").expire(2 * LONG).wait(LONG).acquire());
    yield_now().await;
    let other = in_queue(&server, &connect(&server.url()).await).await;
    let owners = owners_in_queue(&server.admin());
    if is_asked {
        let asked = proxy.commands("EVALSHA");
        proxy.hold_requests();
        holder.release().await.unwrap();
        proxy.wait_for_command("EVALSHA", asked + 1, LIMIT).await;
        give_up(first).await;
        proxy.release_requests();
    } else {
        give_up(first).await;
        assert_eq!(owners_in_queue(&server.admin()), owners);
        holder.release().await.unwrap();
    }
    let second = wait::ends(second).await.unwrap().unwrap();
    let admin = server.admin();
    assert_eq!(admin.get(KEY), owners.first().cloned());
    counts_on_no_more_than_it_has(&admin, &second, 2 * LONG);
    second.release().await.unwrap();
    is_served_last(&server, other).await;
}

#[tokio::test]
async fn a_lease_is_made_longer_during_a_turn() {
    let (server, guard) = handed_off(|lock| lock).await;
    guard.lease().extend(2 * LONG).await.unwrap();
    counts_on_no_more_than_it_has(&server.admin(), &guard, 2 * LONG);
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

/// It has its whole lease from the start, and never believes in a lock that is over at the server.
#[track_caller]
fn counts_on_no_more_than_it_has(admin: &Admin, guard: &LockGuard, lease: Duration) {
    // This is read first, so that the lock's rest may only be smaller.
    let counted = guard.lease().remaining();
    let left = Duration::from_millis(admin.pttl(KEY).try_into().expect("the lock is there"));
    assert!(counted <= left, "{counted:?} of a lock that lasts for {left:?}");
    assert!(lease / 2 < counted && counted <= usable(lease), "{counted:?} of {lease:?}");
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}
