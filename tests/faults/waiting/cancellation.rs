//! Waiters that give up leave nothing behind; a grant that arrives meanwhile is passed on.

use std::collections::hash_map::RandomState;
use std::future::{Future, poll_fn};
use std::hash::BuildHasher;
use std::task::Poll;
use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::Server;
use tokio::task::yield_now;

use super::support::{AT_ONCE, QUEUE, is_over, is_served, queued, waiter, within};
use crate::support::{LIMIT, connect, elapse};

#[tokio::test]
async fn a_dropped_waiter_leaves_the_queue_at_once() {
    let (server, locker) = server_and_locker().await;
    let guard = connect(&server.url()).await.lock("k").acquire().await.unwrap();
    let waiter = waiter(&locker);
    queued(&server, 1).await;
    waiter.abort();
    within("left after a drop", AT_ONCE, queued(&server, 0)).await;
    guard.release().await.unwrap();
    is_over(&server).await;
}

#[tokio::test]
async fn a_waiter_at_its_limit_leaves_the_queue() {
    let (server, locker) = server_and_locker().await;
    let guard = connect(&server.url()).await.lock("k").acquire().await.unwrap();
    let limit = Duration::from_millis(100);
    let error = locker.lock("k").wait_at_most(limit).acquire().await.unwrap_err();
    assert!(error.is_wait_limit_reached(), "{error}");
    within("left after the limit", AT_ONCE, queued(&server, 0)).await;
    guard.release().await.unwrap();
    is_over(&server).await;
}

/// One of several that gives up takes nothing from those who stay.
#[tokio::test]
async fn a_queue_place_stays_with_the_remaining_waiters() {
    let (server, locker) = server_and_locker().await;
    let guard = connect(&server.url()).await.lock("k").acquire().await.unwrap();
    let (first, second) = (waiter(&locker), waiter(&locker));
    queued(&server, 1).await;
    first.abort();
    drop(first.await);
    guard.release().await.unwrap();
    is_served("behind one that gave up", AT_ONCE, second).await;
    is_over(&server).await;
}

/// The first waits for its turn in one process, the second in another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_during_a_cancellation_reaches_the_next_waiter() {
    let (server, one) = server_and_locker().await;
    let (two, holder) = (connect(&server.url()).await, connect(&server.url()).await);
    for round in 0..300 {
        let guard = holder.lock("k").acquire().await.unwrap();
        let first = waiter(&one);
        queued(&server, 1).await;
        let second = waiter(&two);
        queued(&server, 2).await;
        let release = tokio::spawn(guard.release());
        pause(random(300));
        first.abort();
        // It may have been granted the lock before that.
        drop(first);
        let guard = within(&format!("the second in round {round}"), AT_ONCE, second).await;
        guard.unwrap().release().await.unwrap();
        release.await.unwrap().unwrap();
        is_over(&server).await;
    }
}

/// The waiters of one process, half of which give up at random moments.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_that_half_gives_up_leaves_nothing() {
    let (server, one) = server_and_locker().await;
    let two = connect(&server.url()).await;
    for _ in 0..20 {
        let waiters: Vec<_> = (0..40)
            .map(|number| {
                let locker = if number % 2 == 0 { &one } else { &two };
                let request = locker.lock("k").wait_at_most(LIMIT);
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
                tokio::time::timeout(LIMIT, waiter).await.expect("it is served").unwrap();
            }
        }
        is_over(&server).await;
    }
}

#[tokio::test]
async fn a_waiting_call_may_be_dropped_at_every_poll() {
    let server = Server::start();
    for held_by_other in [false, true] {
        for moment in 0..100 {
            let (locker, other) = (connect(&server.url()).await, connect(&server.url()).await);
            let mut guard = None;
            if held_by_other {
                guard = Some(other.lock("k").acquire().await.unwrap());
            }
            let release = async {
                yield_now().await;
                if let Some(guard) = guard {
                    queued_or_left(&server).await;
                    guard.release().await.unwrap();
                }
            };
            let wait = polled(moment, locker.lock("k").wait_at_most(LIMIT).acquire());
            let (guard, ()) = tokio::join!(wait, release);
            let is_done = guard.is_some();
            drop(guard);
            is_over(&server).await;
            if is_done {
                assert!(moment > 1);
                break;
            }
        }
    }
}

/// A waiter may be dropped while its subscription is not there yet, and its place not asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_dropped_at_any_time_leaves_nothing() {
    let server = Server::start();
    let other = connect(&server.url()).await;
    for _ in 0..150 {
        let locker = connect(&server.url()).await;
        // A request that was on its way may still be granted, and released.
        let guard = within("free", AT_ONCE, soon(&other)).await;
        let first = waiter(&locker);
        pause(random(3_000));
        first.abort();
        drop(first.await);
        guard.release().await.unwrap();
        is_over(&server).await;
    }
}

async fn soon(locker: &Locker) -> LockGuard {
    loop {
        if let Some(guard) = locker.lock("k").try_acquire().await.unwrap() {
            return guard;
        }
    }
}

async fn queued_or_left(server: &Server) {
    let admin = server.admin();
    for _ in 0..20 {
        if admin.command::<usize>(&["LLEN", QUEUE]) > 0 {
            return;
        }
        elapse(Duration::from_millis(1)).await;
    }
}

/// The future's output, unless it needs more polls.
async fn polled<F: Future>(limit: usize, future: F) -> Option<F::Output> {
    let mut future = Box::pin(future);
    let mut polls = 0;
    poll_fn(|cx| {
        if polls == limit {
            return Poll::Ready(None);
        }
        polls += 1;
        match future.as_mut().poll(cx) {
            Poll::Pending if polls == limit => Poll::Ready(None),
            outcome => outcome.map(Some),
        }
    })
    .await
}

async fn server_and_locker() -> (Server, Locker) {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    (server, locker)
}

#[expect(clippy::disallowed_methods, reason = "a random moment is the subject")]
fn pause(micros: u64) {
    std::thread::sleep(Duration::from_micros(micros));
}

fn random(below: u64) -> u64 {
    RandomState::new().hash_one(()) % below
}
