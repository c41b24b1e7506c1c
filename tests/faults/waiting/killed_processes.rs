//! Processes that are killed, or stopped, while others wait.

use std::time::Duration;

use lockable_runtime::{LockGuard, LockerBuilder};
use lockable_tests::{Peer, Server, wait};
use rstest::rstest;
use tokio::task::JoinHandle;

use super::support::{
    ample, held, held_beside, in_queue, is_over, is_served, is_served_last, process, queued,
    rechecking, server_and, subscribers,
};
use crate::support::{LIMIT, elapse};

#[tokio::test]
async fn a_killed_holder_costs_its_lease() {
    let (server, locker) = server_and(rechecking).await;
    let mut holder = process(&server.url());
    assert_eq!(holder.ask("hold 3000"), "held");
    let waiter = in_queue(&server, &locker).await;
    drop(holder.kill());
    is_served_last(&server, waiter).await;
}

#[tokio::test]
async fn a_killed_holder_of_several_keys_costs_their_leases() {
    let (server, locker) = server_and(rechecking).await;
    let mut holder = process(&server.url());
    assert_eq!(holder.ask("all 3000"), "held");
    drop(holder.kill());
    let all = locker.lock_all(["a", "k", "z"]).acquire();
    wait::ends(all).await.unwrap().release().await.unwrap();
    is_over(&server).await;
}

/// What it held is renewed, until it is dead.
#[tokio::test]
async fn a_waiter_for_several_keys_that_is_killed_costs_what_it_held() {
    let (server, locker, guard) = held_beside(rechecking).await;
    let mut dying = process(&server.url());
    dying.say("all 3000");
    queued(&server, 1).await;
    let admin = server.admin();
    let is_let_go = async || admin.keys("disLock:*").len() == 2;
    wait::until_async(LIMIT, is_let_go).await;
    assert!(locker.lock("a").try_acquire().await.unwrap_err().is_busy());
    drop(dying.kill());
    let smaller = wait::ends(locker.lock("a").acquire()).await.unwrap();
    smaller.release().await.unwrap();
    let all = locker.lock_all(["a", "k", "z"]).acquire();
    let release = async {
        queued(&server, 1).await;
        guard.release().await.unwrap();
    };
    let (all, ()) = tokio::join!(all, release);
    all.unwrap().release().await.unwrap();
    is_over(&server).await;
}

/// The lock is its own from its query on.
#[tokio::test]
async fn a_killed_holder_of_a_handed_off_lock_costs_its_lease() {
    let (server, guard, mut heads, waiter) = behind(1, 3_000, rechecking).await;
    guard.release().await.unwrap();
    assert_eq!(heads[0].hear(), "held");
    drop(heads.remove(0).kill());
    is_served_last(&server, waiter).await;
}

/// Method: it is stopped, so that the server takes the wake-up as heard, and is killed before it asks.
#[tokio::test]
async fn a_head_that_is_killed_at_its_turn_costs_a_second() {
    let (server, guard, mut heads, waiter) = behind(1, LEASE, rechecking).await;
    heads[0].pause();
    guard.release().await.unwrap();
    drop(heads.remove(0).kill());
    is_served_last(&server, waiter).await;
}

/// The kernel closes a killed process's connections, and the server hears of that.
#[rstest]
#[tokio::test]
async fn killed_waiters_at_the_head_cost_nothing(#[values(1, 3)] count: usize) {
    let (server, guard, heads, waiter) = behind(count, LEASE, ample).await;
    for head in heads {
        drop(head.kill());
    }
    let admin = server.admin();
    wait::until_async(LIMIT, async || subscribers(&admin) == 1).await;
    guard.release().await.unwrap();
    is_served_last(&server, waiter).await;
}

#[tokio::test]
async fn a_stopped_head_costs_at_most_a_second() {
    let (server, guard, mut heads, waiter) = behind(1, LEASE, rechecking).await;
    heads[0].pause();
    guard.release().await.unwrap();
    is_served(waiter).await;
    elapse(Duration::from_millis(100)).await;
    heads[0].resume();
    assert_eq!(heads[0].hear(), "held");
    assert_eq!(heads[0].ask("release"), "free");
    is_over(&server).await;
}

/// In milliseconds; no test reaches its end.
const LEASE: u32 = 300_000;

/// A holder, `count` processes that wait for so long a lease, and a waiter of this process behind them.
async fn behind(
    count: usize,
    lease: u32,
    builder: fn(&str) -> LockerBuilder,
) -> (Server, LockGuard, Vec<Peer>, JoinHandle<LockGuard>) {
    let (server, _locker, guard) = held().await;
    let mut heads = Vec::new();
    for number in 1..=count {
        let mut head = process(&server.url());
        head.say(&format!("wait {lease}"));
        queued(&server, number).await;
        heads.push(head);
    }
    let waiter = in_queue(&server, &builder(&server.url()).connect().await.unwrap()).await;
    (server, guard, heads, waiter)
}
