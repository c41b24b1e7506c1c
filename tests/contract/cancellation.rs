//! A call that is given up at any point leaves no lock behind.

#![expect(clippy::async_yields_async, reason = "what starts a call is not what polls it")]

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use lockable_runtime::Locker;
use lockable_tests::unless_busy;
use tokio::task::yield_now;

use crate::fixture::{AMPLE, KEY, NAME, Store, assert_quiet, hold};

every_backend! { one_thread: [
    an_acquisition_given_up_at_any_poll_leaves_nothing,
    a_given_up_try_spares_the_holder,
    many_given_up_at_once_leave_nothing,
    a_run_given_up_at_any_poll_leaves_nothing,
    an_acquisition_dropped_at_minimum_holds_leaves_nothing,
    a_release_dropped_at_any_poll_frees_the_lock,
    an_extension_dropped_at_any_poll_shortens_nothing,
    an_inspection_given_up_at_any_poll_changes_nothing,
    a_given_up_wait_for_a_loss_misses_nothing,
] and_sentinel: [
    a_first_acquisition_dropped_anywhere_leaves_nothing,
    an_acquisition_given_up_behind_a_drop_leaves_nothing,
    a_runtime_that_ends_in_the_middle_leaves_nothing,
    a_given_up_renewed_call_is_not_renewed,
] }

async fn an_acquisition_given_up_at_any_poll_leaves_nothing(store: &Store) {
    leaves_nothing(store, async |locker| locker.lock(KEY).acquire()).await;
}

/// The first call of a locker connects, which takes more polls.
async fn a_first_acquisition_dropped_anywhere_leaves_nothing(store: &Store) {
    let latest = Cell::new(None);
    let first = async || {
        let locker = store.builder().connect_lazy().unwrap();
        latest.set(Some(locker.clone()));
        locker.lock(KEY).acquire()
    };
    at_every_poll(first, async |_| assert_nothing_left(store, &latest.take().unwrap()).await).await;
}

/// A call that comes after a dropped guard waits for its release first.
async fn an_acquisition_given_up_behind_a_drop_leaves_nothing(store: &Store) {
    let behind_a_drop = async |locker: &Locker| {
        drop(hold(locker).await);
        locker.lock(KEY).acquire()
    };
    leaves_nothing(store, behind_a_drop).await;
}

async fn a_given_up_try_spares_the_holder(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let held = hold(&locker).await;
    at_every_poll(async || other.lock(KEY).try_acquire(), async |_| {}).await;
    // This one comes after the releases of what was given up.
    assert!(other.lock(KEY).try_acquire().await.unwrap_err().is_busy());
    assert!(store.has(NAME));
    held.release().await.unwrap();
}

async fn many_given_up_at_once_leave_nothing(store: &Store) {
    let locker = store.locker().await;
    for turns in 0..TURNS {
        let request = |number: u32| locker.lock((number % 50).to_string());
        let mut calls: Vec<_> = (0..200).map(|key| Box::pin(request(key).try_acquire())).collect();
        for call in &mut calls {
            give_up_after(1, call.as_mut()).await;
        }
        let_others_run(turns).await;
        drop(calls);
        for key in 0..50 {
            request(key).acquire().await.unwrap().release().await.unwrap();
        }
        assert_eq!(store.locks(), [""; 0]);
    }
}

/// Goal: a request that was sent, or was about to be, when everything that drives it went away.
/// Method: a runtime of its own is dropped after a number of polls, with the call in it.
async fn a_runtime_that_ends_in_the_middle_leaves_nothing(store: &Store) {
    let locker = store.locker().await;
    for polls in 1..6 {
        let request = locker.lock(KEY).expire(store.lease());
        let interrupted = || {
            store.runtime().block_on(async {
                let mut call = Box::pin(request.acquire());
                if !give_up_after(polls, call.as_mut()).await {
                    tokio::spawn(call);
                }
            });
        };
        std::thread::scope(|scope| scope.spawn(interrupted).join().unwrap());
        // What was sent may land after its first release, on another connection, was tried.
        while unless_busy(locker.lock(KEY).try_acquire().await).is_none() {
            store.eventually(|| !store.has(NAME)).await;
        }
    }
}

async fn a_run_given_up_at_any_poll_leaves_nothing(store: &Store) {
    leaves_nothing(store, async |locker| locker.lock(KEY).run(a_few_steps())).await;
}

async fn a_given_up_renewed_call_is_not_renewed(store: &Store) {
    let renewed = |locker: &Locker| locker.lock(KEY).expire(store.lease()).renew();
    leaves_nothing(store, async |locker| renewed(locker).acquire()).await;
    let run = async |locker: &Locker| renewed(locker).max_hold(store.lease()).run(a_few_steps());
    leaves_nothing(store, run).await;
    assert_quiet(store).await;
}

/// No one has held the lock, so no minimum hold applies.
async fn an_acquisition_dropped_at_minimum_holds_leaves_nothing(store: &Store) {
    let locker = store.locker().await;
    let check = async |is_done| {
        if is_done { store.delete(NAME) } else { assert_nothing_left(store, &locker).await }
    };
    at_every_poll(async || locker.lock(KEY).min_hold(store.lease()).acquire(), check).await;
}

async fn a_release_dropped_at_any_poll_frees_the_lock(store: &Store) {
    let release = async |locker: &Locker| {
        locker.lock(KEY).expire(store.lease()).renew().acquire().await.unwrap().release()
    };
    leaves_nothing(store, release).await;
    assert_quiet(store).await;
}

async fn an_extension_dropped_at_any_poll_shortens_nothing(store: &Store) {
    let locker = store.locker().await;
    let held = Cell::new(None);
    let extend = async || {
        let guard = hold(&locker).await;
        let lease = guard.lease().clone();
        held.set(Some(guard));
        async move { lease.extend(2 * AMPLE).await }
    };
    let check = async |is_done| {
        let guard = held.take().unwrap();
        assert!(guard.lease().is_held() && guard.lease().remaining() > AMPLE / 2);
        // The lock lives in the store at least as long as its holder counts on.
        assert!(store.life(NAME).unwrap() > AMPLE / 2);
        assert_eq!(guard.lease().remaining() > AMPLE, is_done);
        guard.release().await.unwrap();
        assert_eq!(store.locks(), [""; 0]);
    };
    at_every_poll(extend, check).await;
}

async fn an_inspection_given_up_at_any_poll_changes_nothing(store: &Store) {
    let locker = store.locker().await;
    let guard = hold(&locker).await;
    let is_there = async || locker.inspect(KEY).await.unwrap().is_some() && guard.lease().is_held();
    at_every_poll(async || locker.inspect(KEY), async |_| assert!(is_there().await)).await;
    guard.release().await.unwrap();
}

async fn a_given_up_wait_for_a_loss_misses_nothing(store: &Store) {
    let locker = store.locker().await;
    for polls in 0..3 {
        let guard = locker.lock(KEY).expire(store.lease()).renew().acquire().await.unwrap();
        assert!(!give_up_after(polls.min(1), guard.lease().lost()).await);
        let waiting = guard.lease().clone();
        let waiting = tokio::spawn(async move { waiting.lost().await });
        yield_now().await;
        store.delete(NAME);
        // One of two that wait goes, before the loss or, where the backend names the lock at once, after it.
        if polls < 2 {
            let mut other = Box::pin(guard.lease().lost());
            let _has_ended = give_up_after(1, other.as_mut()).await;
        }
        assert!(waiting.await.unwrap().is_lost());
        assert!(give_up_after(1, guard.lease().lost()).await);
    }
}

/// Nothing is left of a call that is given up at any point.
pub(crate) async fn leaves_nothing<C: Future>(store: &Store, start: impl AsyncFn(&Locker) -> C) {
    let locker = store.locker().await;
    let check = async |_| assert_nothing_left(store, &locker).await;
    at_every_poll(async || start(&locker).await, check).await;
}

/// Gives a call up after each number of polls, until one is enough for it to end, and at each point on the way
/// of what it sent: not sent yet, sent, answered. Each time the check learns whether it has ended.
pub(crate) async fn at_every_poll<C: Future>(
    start: impl AsyncFn() -> C,
    check: impl AsyncFn(bool),
) {
    for turns in 0..TURNS {
        for polls in 0.. {
            let mut call = Box::pin(start().await);
            let is_done = give_up_after(polls, call.as_mut()).await;
            let_others_run(turns).await;
            drop(call);
            check(is_done).await;
            if is_done {
                break;
            }
        }
    }
}

/// What a body does.
async fn a_few_steps() {
    for _ in 0..3 {
        yield_now().await;
    }
}

/// Gives the connection this many turns of the runtime; it needs one to send and one to take in.
async fn let_others_run(turns: u32) {
    for _ in 0..turns {
        yield_now().await;
    }
}

const TURNS: u32 = 8;

/// The next call of a locker comes after what was given up, and finds the lock free at its
/// first try.
async fn assert_nothing_left(store: &Store, locker: &Locker) {
    hold(locker).await.release().await.unwrap();
    assert_eq!(store.locks(), [""; 0]);
}

/// Polls the future at most this many times, each time it was woken, and then drops it; whether it
/// has come to its end.
pub(crate) async fn give_up_after<T>(polls: u32, future: impl Future<Output = T>) -> bool {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if left == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
