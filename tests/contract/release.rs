//! A release frees its own lock and no other, however it comes about.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;
use std::time::Duration;

use lockable_runtime::LockGuard;

use crate::fixture::{KEY, NAME, Redis, Store, at_once, drained, hold, hold_shortly};

every_backend! { one_thread: [
    a_released_lock_is_free_at_once,
    a_lease_of_a_released_lock_is_not_held,
    a_late_release_spares_the_next_holder,
    a_dropped_guard_releases,
    every_acquisition_has_an_owner_of_its_own,
] and_sentinel: [
    an_acquisition_right_after_a_drop_succeeds,
    shutdown_waits_for_what_was_dropped,
    a_guard_dropped_after_its_runtime_ended_releases,
    a_release_that_was_given_up_still_releases,
] }

every_claim! { redis_alone: Redis, one_thread, [
    a_release_leaves_other_data_alone,
] }

async fn a_released_lock_is_free_at_once(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    for _ in 0..20 {
        hold(&locker).await.release().await.unwrap();
        assert!(!store.has(NAME));
        hold(&other).await.release().await.unwrap();
    }
}

async fn a_lease_of_a_released_lock_is_not_held(store: &Store) {
    let locker = store.locker().await;
    let ends: [fn(LockGuard); 2] = [drop, |guard| drop(guard.release())];
    for end in ends {
        let guard = hold(&locker).await;
        let (lease, token) = (guard.lease().clone(), guard.lease().fencing_token());
        assert!(lease.is_held() && lease.remaining() > Duration::ZERO);
        end(guard);
        assert!(!lease.is_held());
        assert_eq!((lease.remaining(), lease.fencing_token()), (Duration::ZERO, token));
        assert_eq!(lease.key().as_str(), NAME);
    }
}

async fn a_late_release_spares_the_next_holder(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    for (next, is_dropped) in [(&locker, false), (&other, false), (&other, true)] {
        let late = hold_shortly(store, &locker).await;
        store.pass(NAME).await;
        let next = hold(next).await;
        if is_dropped {
            drop(late);
        } else {
            let error = late.release().await.unwrap_err();
            assert!(error.is_lost() && error.is_taken() && !error.is_body_finished(), "{error}");
            assert_eq!(error.key(), Some(NAME));
        }
        // This one comes after the release of a dropped guard, and finds the lock busy.
        assert!(locker.lock(KEY).try_acquire().await.unwrap_err().is_busy());
        assert!(next.lease().is_held() && store.has(NAME));
        next.release().await.unwrap();
    }
}

/// Also on another thread, and by a panic.
async fn a_dropped_guard_releases(store: &Store) {
    let locker = store.locker().await;
    let by_a_panic = |guard: LockGuard| {
        let panicking = AssertUnwindSafe(|| {
            let _guard = guard;
            resume_unwind(Box::new("a test's own"));
        });
        assert!(catch_unwind(panicking).is_err());
    };
    let ends: [fn(LockGuard); 3] =
        [drop, |guard| thread::spawn(|| drop(guard)).join().unwrap(), by_a_panic];
    for end in ends {
        end(hold(&locker).await);
        store.eventually(|| !store.has(NAME)).await;
    }
}

async fn a_guard_dropped_after_its_runtime_ended_releases(store: &Store) {
    let locker = store.locker().await;
    let release_late = || {
        let runtime = store.runtime();
        let guard = runtime.block_on(hold(&locker));
        drop(runtime);
        drop(guard);
    };
    thread::scope(|scope| scope.spawn(release_late).join().unwrap());
    store.eventually(|| !store.has(NAME)).await;
    hold(&locker).await.release().await.unwrap();
}

async fn an_acquisition_right_after_a_drop_succeeds(store: &Store) {
    let locker = store.locker().await;
    for _ in 0..50 {
        drop(hold(&locker).await);
    }
    for _ in 0..20 {
        let guard = hold(&locker).await;
        thread::spawn(|| drop(guard)).join().unwrap();
    }
}

async fn a_release_that_was_given_up_still_releases(store: &Store) {
    let locker = store.locker().await;
    for polls in 0..3 {
        let guard = hold(&locker).await;
        crate::cancellation::give_up_after(polls, guard.release()).await;
        store.eventually(|| !store.has(NAME)).await;
        hold(&locker).await.release().await.unwrap();
    }
}

async fn shutdown_waits_for_what_was_dropped(store: &Store) {
    let locker = store.locker().await;
    let mut guards = Vec::new();
    for key in 0..20 {
        guards.push(locker.lock(key.to_string()).acquire().await.unwrap());
    }
    drop(guards);
    drained().await;
    assert_eq!(store.locks(), [""; 0]);
    hold(&locker).await.release().await.unwrap();
}

async fn every_acquisition_has_an_owner_of_its_own(store: &Store) {
    let lockers = [store.locker().await, store.locker().await];
    let mut owners = HashSet::new();
    for round in 0..20 {
        let guard = hold(&lockers[round % 2]).await;
        let is_new = store.owner(NAME).is_none_or(|owner| owners.insert(owner));
        assert!(is_new, "an owner comes twice");
        guard.release().await.unwrap();
    }
}

/// A release that is tried again delays the end of the process.
async fn a_release_leaves_other_data_alone(store: &Redis) {
    let locker = store.locker().await;
    let ends: [fn(LockGuard); 2] = [drop, |guard| drop(at_once(guard.release()))];
    for end in ends {
        let guard = hold(&locker).await;
        store.put_list(NAME);
        end(guard);
        drained().await;
        assert_eq!(store.admin_of(NAME).type_of(NAME), "list");
        store.delete(NAME);
    }
    let guard = hold(&locker).await;
    store.put_list(NAME);
    let error = guard.release().await.unwrap_err();
    assert!(error.is_taken() && error.to_string().contains("another holder"), "{error}");
    store.delete(NAME);
}
