//! The longest lease that an option can ask for, in everything that a lock does.

use std::time::Duration;

use lockable_runtime::__internals::fence_counter;
use lockable_runtime::{LockRequest, Locker};
use lockable_tests::wait;

use super::support::{
    are_served, connect, connect_rechecking, is_over, queued, release_last, server_and_locker,
};
use crate::support::{FENCE, KEY, LIMIT, LONG};

/// Half of the milliseconds that Redis can count.
const LONGEST: Duration = Duration::from_millis(i64::MAX.unsigned_abs() / 2);

#[tokio::test]
async fn is_waited_for_and_handed_off() {
    let (server, one) = server_and_locker().await;
    let other = connect(&server.url()).await;
    let guard = longest(&one).acquire().await.unwrap();
    let waiters = [&one, &other].map(|locker| {
        let request = longest(locker).fair();
        tokio::spawn(async move { request.acquire().await.unwrap() })
    });
    queued(&server, 2).await;
    guard.release().await.unwrap();
    are_served(waiters).await;
    is_over(&server).await;
}

#[tokio::test]
async fn is_handed_off_renewed_and_extended() {
    let (server, one) = server_and_locker().await;
    let other = connect_rechecking(&server.url()).await;
    let holder = longest(&one).min_hold(Duration::from_millis(10)).acquire().await.unwrap();
    let waiter = tokio::spawn(longest(&other).renew().acquire());
    queued(&server, 1).await;
    holder.release().await.unwrap();
    let guard = wait::ends(waiter).await.unwrap().unwrap();
    assert!(server.admin().pttl(KEY) > 2_000);
    guard.lease().extend(LONGEST).await.unwrap();
    assert!(one.inspect("k").await.unwrap().is_some());
    release_last(&server, guard).await;
}

#[tokio::test]
async fn is_granted_with_a_fence_counter_ahead_of_time() {
    let (server, locker) = server_and_locker().await;
    let (seconds, _): (u64, u64) = server.admin().command(&["TIME"]);
    let ahead = (seconds + 3_600) * 1_000_000;
    server.admin().set(FENCE, &ahead.to_string());
    let guard = longest(&locker).acquire().await.unwrap();
    assert_eq!(u64::from(guard.lease().fencing_token()), ahead + 1);
    assert!(server.admin().pttl(FENCE) > 0);
    guard.release().await.unwrap();
}

/// Goal: a call that joins its queue without a try lengthens the life of the fence counter: its grant does not.
#[tokio::test]
async fn keeps_its_fence_counter_while_it_is_waited_for() {
    let (server, locker) = server_and_locker().await;
    let admin = server.admin();
    let holder = locker.lock("k").acquire().await.unwrap();
    assert!(admin.pttl(FENCE) <= FENCE_LIFE);
    let waiter = tokio::spawn(longest(&locker).acquire());
    queued(&server, 1).await;
    assert!(admin.pttl(FENCE) > FENCE_LIFE);
    holder.release().await.unwrap();
    release_last(&server, waiter.await.unwrap().unwrap()).await;
}

/// The same for permits. Method: it takes the place of a call that has left.
#[tokio::test]
async fn keeps_the_fence_counter_of_permits_too() {
    let (server, locker) = server_and_locker().await;
    let (other, admin) = (connect(&server.url()).await, server.admin());
    let permit = |locker: &Locker| locker.lock("k").permits(2).wait(LONG).acquire();
    let held = [permit(&other).await.unwrap(), permit(&other).await.unwrap()];
    let short = [tokio::spawn(permit(&locker)), tokio::spawn(permit(&locker))];
    let long = tokio::spawn(longest(&locker).permits(2).acquire());
    let queue = "lockable:queue:#:disLock:{k}";
    wait::until_async(LIMIT, async || admin.command::<u64>(&["LLEN", queue]) == 2).await;
    let life = || admin.pttl(&fence_counter("disLock:{k}").unwrap());
    assert!(life() <= FENCE_LIFE);
    short[0].abort();
    wait::until_async(LIMIT, async || life() > FENCE_LIFE).await;
    for guard in held {
        guard.release().await.unwrap();
    }
    long.await.unwrap().unwrap().release().await.unwrap();
    short[1].abort();
}

/// How many milliseconds a fence counter lives for the other leases.
const FENCE_LIFE: i64 = 3_000_000;

fn longest(locker: &Locker) -> LockRequest {
    locker.lock("k").expire(LONGEST).wait(LONG)
}
