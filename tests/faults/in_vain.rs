//! No question is asked in vain: what a call learns from the other calls of its locker.

use std::time::Duration;

use lockable_runtime::Locker;
use lockable_tests::{ConnectionTraffic, wait};

use crate::support::{KEY, LIMIT, connect, in_time, server_and_proxy};

/// A lease that its server confirmed so recently is not asked for.
const CONFIRMED: Duration = Duration::from_millis(800);

#[tokio::test]
async fn a_thousand_tries_of_a_held_key_ask_nothing() {
    let (server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    let guard = locker.lock("k").acquire().await.unwrap();
    let (round_trips, admin) = (proxy.round_trips(), server.admin());
    admin.reset_statistics();
    for _ in 0..1_000 {
        assert!(is_busy(&locker).await);
    }
    // Of a machine that is very slow, the last ones may have come too late.
    let is_in_time = guard.remaining() > Duration::from_secs(59);
    if is_in_time {
        assert_eq!(proxy.round_trips(), round_trips);
        assert_eq!(admin.command_calls("set") + admin.command_calls("incr"), 0);
    }
    guard.release().await.unwrap();
    assert!(!is_busy(&locker).await);
}

#[tokio::test]
async fn a_lock_deleted_by_hand_is_soon_free_here() {
    let (server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    let guard = locker.lock("k").acquire().await.unwrap();
    server.admin().del(KEY);
    let is_free = wait::until_async(LIMIT, async || !is_busy(&locker).await);
    in_time(CONFIRMED, is_free).await;
    drop(guard);
}

/// Method: a renewal is answered about every third of a second, so no try has to ask.
#[tokio::test]
async fn a_renewal_confirms_that_the_lock_is_held() {
    let (_server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    let short = locker.lock("k").expire(Duration::from_secs(1)).renew();
    let guard = short.acquire().await.unwrap();
    let asked = || proxy.connection(0, ConnectionTraffic::round_trips);
    let (round_trips, renewals) = (asked(), proxy.commands("EVALSHA") + 4);
    let renewed = async || {
        assert!(is_busy(&locker).await);
        proxy.commands("EVALSHA") >= renewals
    };
    in_time(2 * CONFIRMED, wait::until_async(LIMIT, renewed)).await;
    assert_eq!(asked(), round_trips);
    guard.release().await.unwrap();
}

/// Its release has begun, so the call asks what became of it.
#[tokio::test]
async fn a_minimum_hold_is_asked_for() {
    let (_server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    let guard = locker.lock("k").min_hold(LIMIT).acquire().await.unwrap();
    guard.release().await.unwrap();
    let round_trips = proxy.round_trips();
    assert!(is_busy(&locker).await);
    assert_eq!(proxy.round_trips(), round_trips + 1);
}

#[tokio::test]
async fn a_lock_of_another_locker_is_asked_for() {
    let (server, proxy) = server_and_proxy();
    let (locker, other) = (connect(&proxy.url()).await, connect(&server.url()).await);
    let guard = other.lock("k").acquire().await.unwrap();
    let sets = proxy.commands("SET");
    for _ in 0..3 {
        assert!(is_busy(&locker).await);
    }
    assert_eq!(proxy.commands("SET"), sets + 3);
    guard.release().await.unwrap();
}

async fn is_busy(locker: &Locker) -> bool {
    locker.lock("k").try_acquire().await.unwrap().is_none()
}
