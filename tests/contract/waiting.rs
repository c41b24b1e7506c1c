//! Calls that wait are served in turn, one at a time, and leave nothing behind.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use lockable_runtime::Locker;
use lockable_tests::wait;
use tokio::task::{LocalSet, yield_now};
use tokio::time::Instant;

use crate::fixture::{KEY, LIMIT, NAME, Store, hold};

every_backend! { one_thread: [] and_sentinel: [
    a_waiter_has_the_lock_after_its_release,
    a_wait_limit_ends_the_wait_with_an_error,
    waiters_of_a_process_are_served_in_order,
    waiters_of_other_lockers_are_served_too,
    a_dead_holder_costs_no_more_than_its_lease,
] and_order: [
    a_fair_lock_alternates_between_processes,
]}

async fn a_waiter_has_the_lock_after_its_release(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let guard = hold(&locker).await;
    let waiter = async {
        let guard = other.lock(KEY).wait(LIMIT).acquire().await.unwrap();
        assert!(guard.lease().is_held());
        guard.release().await.unwrap();
    };
    let holder = async {
        yield_now().await;
        assert!(other.lock(KEY).try_acquire().await.unwrap_err().is_busy());
        guard.release().await.unwrap();
    };
    tokio::join!(waiter, holder);
}

async fn a_wait_limit_ends_the_wait_with_an_error(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let guard = hold(&locker).await;
    for limit in [Duration::ZERO, Duration::from_millis(150)] {
        let error = other.lock(KEY).wait(limit).acquire().await.unwrap_err();
        assert!(error.is_wait_limit_reached() && error.is_busy(), "{error}");
        assert!(!error.is_lost() && !error.is_body_finished() && !error.is_unavailable());
        assert!(error.key() == Some(NAME) && error.to_string().contains(NAME), "{error}");
    }
    guard.release().await.unwrap();
    // The lock is handed off to no place that was left in the queue.
    store.eventually(|| !store.has(NAME)).await;
    hold(&locker).await.release().await.unwrap();
}

async fn waiters_of_a_process_are_served_in_order(store: &Store) {
    let locker = store.locker().await;
    let guard = hold(&locker).await;
    let served = Rc::new(RefCell::new(Vec::new()));
    let local = LocalSet::new();
    for number in 0..40 {
        let (request, served) = (locker.lock(KEY), Rc::clone(&served));
        local.spawn_local(async move {
            let guard = request.acquire().await.unwrap();
            served.borrow_mut().push(number);
            guard.release().await.unwrap();
        });
    }
    // It is polled after the others, which wait by then.
    local.spawn_local(async { guard.release().await.unwrap() });
    local.await;
    assert_eq!(*served.borrow(), (0..40).collect::<Vec<_>>());
}

async fn waiters_of_other_lockers_are_served_too(store: &Store) {
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

async fn a_dead_holder_costs_no_more_than_its_lease(store: &Store) {
    let locker = store.locker().await;
    let start = Instant::now();
    store.put_foreign(NAME, store.short());
    let guard = locker.lock(KEY).wait(LIMIT).acquire().await.unwrap();
    let passed = start.elapsed();
    assert!(passed < 2 * store.short() || !store.is_exact(), "{passed:?}");
    guard.release().await.unwrap();
}

async fn a_fair_lock_alternates_between_processes(store: &Store) {
    let (one, two) = (store.locker().await, store.locker().await);
    let guard = hold(&one).await;
    let served = RefCell::new(Vec::new());
    let wait = async |name: char, locker: &Locker| {
        let guard = locker.lock(KEY).fair().acquire().await.unwrap();
        served.borrow_mut().push(name);
        guard.release().await.unwrap();
    };
    let release = async {
        let admin = one.admin();
        wait::until_async(wait::HANG, async || admin.queue(KEY).await.unwrap().len() == 2).await;
        guard.release().await.unwrap();
    };
    tokio::join!(wait('a', &one), wait('a', &one), wait('b', &two), wait('b', &two), release);
    let served = served.borrow().iter().collect::<String>();
    assert!(["abab", "baba"].contains(&served.as_str()), "{served}");
}
