//! Calls that wait are served in turn, one at a time, and leave nothing behind.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockable_runtime::Locker;
use tokio::task::{JoinSet, yield_now};

use crate::fixture::{Fixture, KEY, NAME, hold};

every_backend! { one_thread: [
    a_waiter_has_the_lock_after_its_release,
    a_wait_limit_ends_the_wait_with_an_error,
    waiters_of_a_process_are_served_in_order,
    waiters_of_other_lockers_are_served_too,
    a_waiter_that_gives_up_leaves_the_queue,
    a_dead_holder_costs_no_more_than_its_lease,
    a_fair_lock_alternates_between_processes,
]}

mod threads {
    use super::holders_exclude_each_other_and_their_tokens_rise;

    every_backend! { many_threads: [
        holders_exclude_each_other_and_their_tokens_rise,
    ]}
}

async fn a_waiter_has_the_lock_after_its_release<F: Fixture>(store: &F) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let guard = hold(&locker).await;
    let waiter = async {
        let guard = other.lock(KEY).wait_at_most(Duration::from_secs(5)).acquire().await.unwrap();
        assert!(guard.is_held() && guard.remaining() > Duration::ZERO);
        guard.release().await.unwrap();
    };
    let holder = async {
        yield_now().await;
        assert!(other.lock(KEY).try_acquire().await.unwrap().is_none());
        guard.release().await.unwrap();
    };
    tokio::join!(waiter, holder);
}

async fn a_wait_limit_ends_the_wait_with_an_error<F: Fixture>(store: &F) {
    let locker = store.locker().await;
    let guard = hold(&locker).await;
    let limit = Duration::from_millis(150);
    let error = store.locker().await.lock(KEY).wait_at_most(limit).acquire().await.unwrap_err();
    assert!(error.is_wait_limit_reached() && error.is_busy(), "{error}");
    assert_eq!(error.key(), Some(NAME));
    guard.release().await.unwrap();
}

async fn waiters_of_a_process_are_served_in_order<F: Fixture>(store: &F) {
    let locker = store.locker().await;
    let guard = hold(&locker).await;
    let served = Rc::new(RefCell::new(Vec::new()));
    let waiters = (0..40).map(|number| {
        let (request, served) = (locker.lock(KEY), Rc::clone(&served));
        async move {
            let guard = request.acquire().await.unwrap();
            served.borrow_mut().push(number);
            guard.release().await.unwrap();
        }
    });
    let mut all: Vec<_> = waiters.map(Box::pin).collect();
    let first = std::future::poll_fn(|cx| {
        for waiter in &mut all {
            assert!(waiter.as_mut().poll(cx).is_pending());
        }
        std::task::Poll::Ready(())
    });
    first.await;
    let local = tokio::task::LocalSet::new();
    for waiter in all {
        local.spawn_local(waiter);
    }
    local.spawn_local(async { guard.release().await.unwrap() });
    local.await;
    assert_eq!(*served.borrow(), (0..40).collect::<Vec<_>>());
}

async fn waiters_of_other_lockers_are_served_too<F: Fixture>(store: &F) {
    let guard = hold(&store.locker().await).await;
    let count = Cell::new(0);
    let wait = async |locker: Locker| {
        for _ in 0..30 {
            let guard = locker.lock(KEY).acquire().await.unwrap();
            count.set(count.get() + 1);
            yield_now().await;
            guard.release().await.unwrap();
        }
    };
    let (one, two, three) = (store.locker().await, store.locker().await, store.locker().await);
    let release = async { guard.release().await.unwrap() };
    tokio::join!(wait(one.clone()), wait(one), wait(two), wait(three), release);
    assert_eq!(count.get(), 120);
}

async fn a_waiter_that_gives_up_leaves_the_queue<F: Fixture>(store: &F) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let guard = hold(&locker).await;
    let short = other.lock(KEY).wait_at_most(Duration::from_millis(50)).acquire().await;
    assert!(short.unwrap_err().is_wait_limit_reached());
    guard.release().await.unwrap();
    store.eventually(|| !store.has(NAME)).await;
    hold(&locker).await.release().await.unwrap();
}

async fn a_dead_holder_costs_no_more_than_its_lease<F: Fixture>(store: &F) {
    let locker = store.locker().await;
    store.put_foreign(NAME, F::LEASE);
    let guard = locker.lock(KEY).wait_at_most(4 * F::LEASE).acquire().await.unwrap();
    guard.release().await.unwrap();
}

async fn a_fair_lock_alternates_between_processes<F: Fixture>(store: &F) {
    let (one, two) = (store.locker().await, store.locker().await);
    let guard = hold(&one).await;
    let served = RefCell::new(Vec::new());
    let wait = async |name: char, locker: &Locker| {
        let guard = locker.lock(KEY).fair().acquire().await.unwrap();
        served.borrow_mut().push(name);
        guard.release().await.unwrap();
    };
    let release = async {
        // Long enough for all to wait.
        store.elapse(F::LEASE / 2).await;
        guard.release().await.unwrap();
    };
    tokio::join!(wait('a', &one), wait('a', &one), wait('b', &two), wait('b', &two), release);
    let served = served.borrow().iter().collect::<String>();
    assert!(["abab", "baba"].contains(&served.as_str()), "{served}");
}

async fn holders_exclude_each_other_and_their_tokens_rise<F: Fixture>(store: &F) {
    let inside = Arc::new(AtomicUsize::new(0));
    let latest = Arc::new(std::sync::Mutex::new(0_u64));
    let mut tasks = JoinSet::new();
    for number in 0..3 {
        let locker = store.locker().await;
        for _ in 0..16 {
            let (locker, inside, latest) =
                (locker.clone(), Arc::clone(&inside), Arc::clone(&latest));
            tasks.spawn(async move {
                for _ in 0..20 {
                    let request = locker.lock(KEY);
                    let request = if number == 0 { request.fair() } else { request };
                    let guard = request.acquire().await.unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    let token = u64::from(guard.fencing_token());
                    let former = std::mem::replace(&mut *latest.lock().unwrap(), token);
                    assert!(token > former, "{token} after {former}");
                    yield_now().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    guard.release().await.unwrap();
                }
            });
        }
    }
    tasks.join_all().await;
}
