//! A body runs only while its lease is held.

use std::cell::Cell;
use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use lockable_runtime::LockError;
use tokio::task::yield_now;

use crate::cancellation::give_up_after;
use crate::fixture::{KEY, NAME, Store, hold, run_in_time};

every_backend! { one_thread: [
    a_run_gives_what_its_body_gives_and_releases,
    no_body_starts_while_another_holds_the_lock,
    a_waiting_body_is_stopped_when_its_lease_ends,
    no_body_is_polled_after_its_lease,
    blocking_past_the_lease_is_reported_as_completed,
    a_panicking_body_releases_and_the_panic_continues,
    a_body_is_dropped_before_its_lock_is_released,
    a_stopped_body_leaves_the_next_holder_alone,
    a_body_gives_its_value_after_an_unnoticed_loss,
] }

async fn a_run_gives_what_its_body_gives_and_releases(store: &Store) {
    let locker = store.locker().await;
    for round in 0..20 {
        let body = async {
            yield_now().await;
            assert!(store.has(NAME));
            round
        };
        assert_eq!(locker.lock(KEY).run(body).await.unwrap(), round);
        assert!(!store.has(NAME));
    }
    let outcome = locker.lock(KEY).run(async { Err::<(), _>("sold out") }).await;
    assert_eq!(outcome.unwrap(), Err("sold out"));
    assert!(!store.has(NAME));
}

async fn no_body_starts_while_another_holds_the_lock(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let held = hold(&locker).await;
    let never = async { unreachable!("the body runs without its lock") };
    assert!(other.lock(KEY).try_run::<_>(never).await.is_err_and(|error| error.is_busy()));
    held.release().await.unwrap();
    assert_eq!(other.lock(KEY).try_run(async { 42 }).await.unwrap(), 42);
}

/// Also where it ends within the body's first step, when nothing watches it yet.
async fn a_waiting_body_is_stopped_when_its_lease_ends(store: &Store) {
    for blocked in [Duration::ZERO, store.short()] {
        let dropped = Cell::new(false);
        let body = async || {
            let _end = OnDrop(|| dropped.set(true));
            store.block(blocked);
            pending::<()>().await;
        };
        let error = run_shortly(store, body).await.unwrap_err();
        assert!(error.is_lost() && !error.is_body_finished(), "{error}");
        assert_eq!(error.key(), Some(NAME));
        assert!(dropped.get());
    }
}

/// Goal: one more step of a body whose process was stopped past the lease.
/// Method: the body blocks its thread that long at its first poll, having asked for the next.
async fn no_body_is_polled_after_its_lease(store: &Store) {
    let polls = Cell::new(0);
    let poll = |cx: &mut Context<'_>| {
        polls.set(polls.get() + 1);
        store.block(store.short());
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    };
    let error = run_shortly(store, async || poll_fn(poll).await).await.unwrap_err();
    assert!(error.is_lost() && !error.is_body_finished(), "{error}");
    assert_eq!(polls.get(), 1);
}

async fn blocking_past_the_lease_is_reported_as_completed(store: &Store) {
    let error = run_shortly(store, async || store.block(store.short())).await.unwrap_err();
    assert!(error.is_lost() && error.is_body_finished(), "{error}");
    assert_eq!(error.key(), Some(NAME));
}

async fn a_panicking_body_releases_and_the_panic_continues(store: &Store) {
    let locker = store.locker().await;
    for yields in 0..2 {
        let body = async {
            for _ in 0..yields {
                yield_now().await;
            }
            resume_unwind(Box::new("the body's own"));
        };
        let panic = caught(locker.lock(KEY).run::<_>(body)).await.unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"the body's own"));
        hold(&locker).await.release().await.unwrap();
    }
}

/// Goal: a body, and what it owns, that outlives its lock.
/// Method: what the body owns looks for the lock in the store when it is dropped.
async fn a_body_is_dropped_before_its_lock_is_released(store: &Store) {
    let locker = store.locker().await;
    let (polls, in_time) = (&Cell::new(0), &Cell::new(0));
    let body = |step: fn() -> Poll<()>| {
        let owned = OnDrop(|| in_time.set(in_time.get() + u32::from(store.has(NAME))));
        poll_fn(move |_| {
            let _owned = &owned;
            polls.set(polls.get() + 1);
            step()
        })
    };
    locker.lock(KEY).run(body(|| Poll::Ready(()))).await.unwrap();
    assert_eq!((polls.get(), in_time.get()), (1, 1), "at its end");
    let panicking = locker.lock(KEY).run(body(|| resume_unwind(Box::new(()))));
    assert!(caught(panicking).await.is_err());
    assert_eq!((polls.get(), in_time.get()), (2, 2), "by a panic");
    let mut call = Box::pin(locker.lock(KEY).run(body(|| Poll::Pending)));
    while polls.get() < 3 {
        assert!(!give_up_after(1, call.as_mut()).await);
        yield_now().await;
    }
    assert_eq!(in_time.get(), 2);
    drop(call);
    assert_eq!(in_time.get(), 3, "with its call");
}

async fn a_stopped_body_leaves_the_next_holder_alone(store: &Store) {
    let other = store.locker().await;
    let next = Cell::new(None);
    let body = async || {
        store.pass(NAME).await;
        next.set(Some(hold(&other).await));
    };
    // The body cannot get as far as the next holder: it is stopped first.
    assert!(run_shortly(store, body).await.unwrap_err().is_lost());
    assert!(next.take().is_none());
    store.pass(NAME).await;
    let next = hold(&other).await;
    assert!(store.locker().await.lock(KEY).try_acquire().await.unwrap_err().is_busy());
    next.release().await.unwrap();
}

/// The lease had not passed, so the holder could not know.
async fn a_body_gives_its_value_after_an_unnoticed_loss(store: &Store) {
    let body = async {
        store.lose_all_data();
        42
    };
    match store.locker().await.lock(KEY).run(body).await {
        // A check of all leases may come in between.
        Err(error) if !store.is_exact() => assert!(error.is_lost(), "{error}"),
        outcome => assert_eq!(outcome.unwrap(), 42),
    }
}

/// What comes of a body under the fixture's short lease.
async fn run_shortly<T>(store: &Store, body: impl AsyncFn() -> T) -> Result<T, LockError> {
    let locker = store.locker().await;
    run_in_time(|| locker.lock(KEY).expire(store.short()), body).await
}

/// The future's value, or what it panicked with.
pub(crate) async fn caught<T>(future: impl Future<Output = T>) -> std::thread::Result<T> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)));
        match polled {
            Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await
}

pub(crate) struct OnDrop<F: Fn()>(pub(crate) F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
