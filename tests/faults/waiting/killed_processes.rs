//! Processes that are killed, or stopped, while others wait.

use std::time::Duration;

use lockable_runtime::{LockError, LockGuard};
use lockable_tests::{Peer, Server, wait};

use super::support::{AT_ONCE, RECHECK, is_over, process, queued, within};
use crate::support::{LIMIT, connect, elapse};

const LEASE: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_killed_holder_costs_its_lease() {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    let mut holder = process(&server.url());
    assert_eq!(holder.ask("hold 3000"), "held");
    let waiter = tokio::spawn(locker.lock("k").wait_at_most(LIMIT).acquire());
    queued(&server, 1).await;
    drop(holder.kill());
    is_served("holder killed, lease of 3 s", LEASE + AT_ONCE, waiter).await;
    is_over(&server).await;
}

#[tokio::test]
async fn a_holder_killed_early_costs_the_short_grant() {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    let guard = locker.lock("k").acquire().await.unwrap();
    let mut head = process(&server.url());
    head.say("wait 60000");
    queued(&server, 1).await;
    let waiter = tokio::spawn(locker.lock("k").wait_at_most(LIMIT).acquire());
    queued(&server, 2).await;
    guard.release().await.unwrap();
    assert_eq!(head.hear(), "held");
    drop(head.kill());
    is_served("holder by hand-off killed", RECHECK, waiter).await;
    is_over(&server).await;
}

#[tokio::test]
async fn a_killed_waiter_at_the_head_costs_nothing() {
    let (server, guard, mut heads, waiter) = behind(1).await;
    drop(heads.remove(0).kill());
    no_subscribers_but(&server, 1).await;
    guard.release().await.unwrap();
    is_served("head killed", AT_ONCE, waiter).await;
    is_over(&server).await;
}

#[tokio::test]
async fn a_killed_waiter_of_many_costs_nothing() {
    let (server, guard, heads, waiter) = behind(3).await;
    for head in heads {
        drop(head.kill());
    }
    no_subscribers_but(&server, 1).await;
    guard.release().await.unwrap();
    is_served("three heads killed", AT_ONCE, waiter).await;
    is_over(&server).await;
}

#[tokio::test]
async fn a_stopped_head_costs_at_most_the_short_grant() {
    let (server, guard, mut heads, waiter) = behind(1).await;
    heads[0].pause();
    guard.release().await.unwrap();
    is_served("head stopped", RECHECK, waiter).await;
    elapse(Duration::from_millis(100)).await;
    heads[0].resume();
    assert_eq!(within("the head continues", RECHECK, async { heads[0].hear() }).await, "held");
    assert_eq!(heads[0].ask("release"), "free");
    is_over(&server).await;
}

/// A holder, `count` processes that wait, and a waiter of this process behind them.
async fn behind(count: usize) -> (Server, LockGuard, Vec<Peer>, Waiter) {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    let guard = locker.lock("k").acquire().await.unwrap();
    let mut heads = Vec::new();
    for number in 1..=count {
        let mut head = process(&server.url());
        head.say("wait 60000");
        queued(&server, number).await;
        heads.push(head);
    }
    let waiter = tokio::spawn(connect(&server.url()).await.lock("k").wait_at_most(LIMIT).acquire());
    queued(&server, count + 1).await;
    (server, guard, heads, waiter)
}

type Waiter = tokio::task::JoinHandle<Result<LockGuard, LockError>>;

async fn is_served(what: &str, bound: Duration, waiter: Waiter) {
    let guard = within(what, bound, waiter).await.unwrap().unwrap();
    guard.release().await.unwrap();
}

/// The kernel closes a killed process's connections, and the server hears of that.
async fn no_subscribers_but(server: &Server, count: usize) {
    let admin = server.admin();
    wait::until_async(LIMIT, async || {
        admin.command::<String>(&["CLIENT", "LIST", "TYPE", "pubsub"]).lines().count() == count
    })
    .await;
}
