//! Waiters that give up leave nothing behind; a turn that comes meanwhile is passed on.

use std::time::Duration;

use lockable_tests::{Server, wait};

use super::support::{
    connect, connect_rechecking, held, in_queue, is_over, is_served, is_served_last, queued,
    random, rechecking, release_last, server_and, waiter,
};
use crate::cancellation::polls::at_every_poll;
use crate::support::LONG;

#[tokio::test]
async fn a_waiter_that_gives_up_leaves_the_queue_at_once() {
    let (server, locker, guard) = held().await;
    in_queue(&server, &locker).await.abort();
    wait::ends(queued(&server, 0)).await;
    let limit = Duration::from_millis(100);
    let error = locker.lock("k").wait(limit).acquire().await.unwrap_err();
    assert!(error.is_wait_limit_reached(), "{error}");
    wait::ends(queued(&server, 0)).await;
    release_last(&server, guard).await;
}

/// One of several that gives up takes nothing from those who stay.
#[tokio::test]
async fn a_queue_place_stays_with_the_remaining_waiters() {
    let (server, locker, guard) = held().await;
    let (first, second) = (waiter(&locker), waiter(&locker));
    queued(&server, 1).await;
    first.abort();
    drop(first.await);
    guard.release().await.unwrap();
    is_served_last(&server, second).await;
}

/// Goal: the kept turn does not lapse, for which the second would have to wait.
/// Method: the first waits for its turn in one process, the second in another, and the server counts what lapses there.
/// A machine that stands still for as long as a turn is kept does so in few of the rounds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_during_a_cancellation_reaches_the_next_waiter() {
    const ROUNDS: usize = 150;
    let (server, one) = server_and(rechecking).await;
    let (two, holder) = (connect_rechecking(&server.url()).await, connect(&server.url()).await);
    for _ in 0..ROUNDS {
        let guard = holder.lock("k").acquire().await.unwrap();
        let first = in_queue(&server, &one).await;
        let second = in_queue(&server, &two).await;
        let release = tokio::spawn(guard.release());
        pause(random(300));
        first.abort();
        // It may have been granted the lock before that.
        drop(first);
        is_served(second).await;
        release.await.unwrap().unwrap();
        is_over(&server).await;
    }
    let statistics = server.admin().info("stats");
    let (_, lapsed) = statistics.split_once("expired_keys:").unwrap();
    let lapsed: usize = lapsed.lines().next().unwrap().parse().unwrap();
    assert!(lapsed <= ROUNDS / 20, "{lapsed}");
}

/// The waiters of one process, half of which give up at random moments.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_that_half_gives_up_leaves_nothing() {
    let (server, one) = server_and(rechecking).await;
    let two = connect_rechecking(&server.url()).await;
    for _ in 0..10 {
        let waiters: Vec<_> = (0..40)
            .map(|number| {
                let locker = if number % 2 == 0 { &one } else { &two };
                let request = locker.lock("k").wait(LONG);
                let work = async move { request.acquire().await.unwrap().release().await.unwrap() };
                (number, tokio::spawn(work))
            })
            .collect();
        for (number, waiter) in waiters {
            if number % 4 < 2 {
                pause(random(100));
                waiter.abort();
                drop(waiter.await);
            } else {
                wait::ends(waiter).await.unwrap();
            }
        }
        is_over(&server).await;
    }
}

/// The holder releases when the call is in the queue, or has been dropped before.
#[tokio::test]
async fn a_waiting_call_may_be_dropped_at_every_poll() {
    let server = Server::start();
    at_every_poll(1, async |moment| {
        let (locker, other) = (connect(&server.url()).await, connect(&server.url()).await);
        let guard = other.lock("k").acquire().await.unwrap();
        let release = async {
            let is_queued = tokio::time::timeout(Duration::from_millis(20), queued(&server, 1));
            drop(is_queued.await);
            guard.release().await.unwrap();
        };
        let call = moment.of(locker.lock("k").wait(LONG).acquire());
        let (guard, ()) = tokio::join!(call, release);
        let is_done = guard.is_some();
        drop(guard);
        is_over(&server).await;
        is_done
    })
    .await;
}

/// A waiter may be dropped while its subscription is not there yet, and its place not asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_dropped_at_any_time_leaves_nothing() {
    let server = Server::start();
    let other = connect(&server.url()).await;
    for _ in 0..100 {
        let locker = connect(&server.url()).await;
        // A request that was on its way may still be granted, and released.
        let guard = wait::ends(other.lock("k").acquire()).await.unwrap();
        let first = waiter(&locker);
        pause(random(3_000));
        first.abort();
        drop(first.await);
        guard.release().await.unwrap();
        is_over(&server).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "a random moment is the subject")]
fn pause(micros: u64) {
    std::thread::sleep(Duration::from_micros(micros));
}
