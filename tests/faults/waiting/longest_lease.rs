//! The longest lease that an option can ask for, in everything that a lock does.

use std::time::Duration;

use lockable_runtime::{LockRequest, Locker};
use lockable_tests::wait;

use super::support::{
    AT_ONCE, are_served, connect, is_over, queued, release_last, server_and_locker, within,
};
use crate::support::{FENCE, KEY, LIMIT};

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
    are_served("the longest lease", 2 * AT_ONCE, waiters).await;
    is_over(&server).await;
}

#[tokio::test]
async fn is_claimed_renewed_and_extended() {
    let (server, one) = server_and_locker().await;
    let other = connect(&server.url()).await;
    let holder = longest(&one).min_hold(Duration::from_millis(10)).acquire().await.unwrap();
    let waiter = tokio::spawn(longest(&other).renew().acquire());
    queued(&server, 1).await;
    holder.release().await.unwrap();
    let guard = within("handed off", 2 * AT_ONCE, waiter).await.unwrap().unwrap();
    wait::until_async(LIMIT, async || server.admin().pttl(KEY) > 2_000).await;
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

fn longest(locker: &Locker) -> LockRequest {
    locker.lock("k").expire(LONGEST).wait(LIMIT)
}
