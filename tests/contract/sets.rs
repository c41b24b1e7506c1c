//! Several locks for one call: all of them or none, and a lease for each.

use std::cell::Cell;
use std::future::pending;
use std::time::Duration;

use lockable_runtime::{Lease, LockError, LockErrorKind, LockKey, LockRequest, LockSet, Locker};
use lockable_tests::{Sections, long_form, unless_busy, wait};
use tokio::task::yield_now;
use tokio::time::Instant;

use crate::body::OnDrop;
use crate::cancellation::give_up_after;
use crate::fixture::{AMPLE, LIMIT, Store, assert_quiet, at_once, drained};

every_backend! { one_thread: [
    leases_are_in_the_order_written,
    equal_keys_are_one_lock_with_two_places,
    no_key_and_too_many_are_refused_before_anything_is_sent,
    a_body_that_asks_for_any_of_its_keys_is_refused,
    the_busy_error_names_the_busy_key,
    of_calls_at_the_same_moment_exactly_one_wins,
    a_set_given_up_at_any_poll_leaves_nothing,
] and_sentinel: [
    one_try_takes_all_or_none,
    one_lost_key_stops_the_body_and_frees_all,
    calls_with_the_same_keys_in_any_order_all_end,
] and_operators: [
    a_call_that_waits_has_smaller_keys_only,
    a_set_given_up_while_it_waits_leaves_nothing,
    what_is_held_while_others_are_waited_for_is_renewed,
    the_terms_begin_with_the_last_lock,
    a_lock_lost_while_others_are_waited_for_is_taken_again,
    one_revoked_key_stops_the_body_and_frees_all,
] }

/// In the order of their texts, and so in several slots of a cluster.
const KEYS: [&str; 3] = ["a", "b", "c"];

async fn leases_are_in_the_order_written(store: &Store) {
    let locker = store.locker().await;
    let first = all(&locker, ["c", "a", "b"]).acquire().await.unwrap();
    assert_eq!(names(&first), ["disLock:c", "disLock:a", "disLock:b"]);
    assert!(first.leases().is_held() && first.leases().remaining() > AMPLE / 2);
    let before: Vec<_> = first.leases().iter().map(Lease::fencing_token).collect();
    first.release().await.unwrap();
    assert_eq!(store.locks(), [""; 0]);
    let second = all(&locker, ["c", "a", "b"]).try_acquire().await.unwrap();
    let after = second.leases().iter().map(Lease::fencing_token);
    assert!(after.zip(before).all(|(after, before)| after > before));
    second.leases().extend(2 * AMPLE).await.unwrap();
    assert!(second.leases().remaining() > AMPLE);
    drop(second);
    drained().await;
    assert_eq!(store.locks(), [""; 0]);
}

async fn equal_keys_are_one_lock_with_two_places(store: &Store) {
    let locker = store.locker().await;
    let set = all(&locker, ["b", "b"]).acquire().await.unwrap();
    assert_eq!(names(&set), ["disLock:b", "disLock:b"]);
    assert_eq!(set.leases()[0].fencing_token(), set.leases()[1].fencing_token());
    assert_eq!(store.locks(), ["disLock:b"]);
    // What it was renewed by until it had all is over.
    assert_quiet(store).await;
    set.release().await.unwrap();
}

async fn no_key_and_too_many_are_refused_before_anything_is_sent(store: &Store) {
    let locker = store.locker().await;
    let before = store.requests();
    let numbers = |count: usize| (0..count).map(|number| number.to_string());
    for count in [0, 65] {
        let never = async { unreachable!("the body runs without its locks") };
        for error in [
            locker.lock_all(numbers(count)).try_acquire().await.unwrap_err(),
            locker.lock_all(numbers(count)).run::<_>(never).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), LockErrorKind::InvalidKey, "{error}");
        }
    }
    let endless = locker.lock_all(std::iter::repeat("k")).acquire().await.unwrap_err();
    assert_eq!(endless.kind(), LockErrorKind::InvalidKey);
    assert_eq!(locker.lock_all(["a", "}"]).acquire().await.unwrap_err().kind(), endless.kind());
    assert_eq!((store.requests(), store.keyspace()), (before, vec![]));
    let most = locker.lock_all(numbers(64)).acquire().await.unwrap();
    assert_eq!(store.locks().len(), 64);
    most.release().await.unwrap();
}

async fn a_body_that_asks_for_any_of_its_keys_is_refused(store: &Store) {
    let locker = store.locker().await;
    let body = async {
        for key in KEYS {
            assert_refused(at_once(locker.lock(key).acquire()).unwrap().map(drop), key);
            assert_refused(at_once(all(&locker, ["z", key]).acquire()).unwrap().map(drop), key);
            yield_now().await;
        }
        all(&locker, ["d", "e"]).try_run(async { 42 }).await.unwrap()
    };
    assert_eq!(all(&locker, KEYS).run(body).await.unwrap(), 42);
    all(&locker, KEYS).try_acquire().await.unwrap().release().await.unwrap();
}

async fn the_busy_error_names_the_busy_key(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let held = other.lock("b").acquire().await.unwrap();
    for limit in [Duration::ZERO, Duration::from_millis(50)] {
        let error = all(&locker, ["c", "b", "a"]).wait(limit).acquire().await.unwrap_err();
        assert!(error.is_wait_limit_reached(), "{error}");
        assert_eq!(error.key(), Some("disLock:b"));
        let words = if limit.is_zero() { "has the lock" } else { "of at most 50ms" };
        assert!(error.to_string().contains(words), "{error}");
        wait::until_async(wait::HANG, async || store.locks() == ["disLock:b"]).await;
    }
    held.release().await.unwrap();
}

/// Goal: of calls that take what the others want, none is left without all of its keys.
/// Method: three processes, or two of which one calls twice, try at the same moment, each first in its turn.
async fn of_calls_at_the_same_moment_exactly_one_wins(store: &Store) {
    let [one, two, three] = [store.locker().await, store.locker().await, store.locker().await];
    for round in 0..long_form(50, 1_000) {
        let mut lockers = [&one, &two, if round % 2 == 0 { &one } else { &three }];
        lockers.rotate_left(round % 3);
        let [first, second, third] = lockers.map(|locker| all(locker, ["b", "a"]).try_acquire());
        let (first, second, third) = tokio::join!(first, second, third);
        let won: Vec<_> = [first, second, third].into_iter().filter_map(unless_busy).collect();
        assert_eq!(won.len(), 1);
        for set in won {
            set.release().await.unwrap();
        }
        assert_eq!(store.locks(), [""; 0]);
    }
}

async fn a_set_given_up_at_any_poll_leaves_nothing(store: &Store) {
    let locker = store.locker().await;
    let acquire = || all(&locker, KEYS).acquire();
    for limit in [Duration::ZERO, LIMIT] {
        let request = |locker| all(locker, KEYS).wait(limit);
        for polls in 0.. {
            let is_done = give_up_after(polls, request(&locker).acquire()).await;
            yield_now().await;
            acquire().await.unwrap().release().await.unwrap();
            assert_eq!(store.locks(), [""; 0]);
            if is_done {
                break;
            }
        }
    }
}

async fn one_try_takes_all_or_none(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    for busy in KEYS {
        let held = other.lock(busy).acquire().await.unwrap();
        let never = async { unreachable!("the body runs without all of its locks") };
        // A minimum hold begins with the last lock.
        let request = all(&locker, KEYS).min_hold(AMPLE);
        assert!(request.try_acquire().await.unwrap_err().is_busy());
        // Released before the answer.
        assert_eq!(store.locks(), [format!("disLock:{busy}")]);
        assert!(all(&locker, KEYS).try_run::<_>(never).await.is_err_and(|error| error.is_busy()));
        held.release().await.unwrap();
    }
    assert_eq!(all(&locker, KEYS).try_run(async { 42 }).await.unwrap(), 42);
    assert_eq!(store.locks(), [""; 0]);
}

async fn a_call_that_waits_has_smaller_keys_only(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let held = other.lock("b").acquire().await.unwrap();
    let waiting = all(&locker, ["c", "b", "a"]).acquire();
    let release = async {
        is_waiting(&locker, "b").await;
        let is_let_go = async || store.has("disLock:a") && !store.has("disLock:c");
        wait::until_async(wait::HANG, is_let_go).await;
        // What is let go is free for others, and waited for where they have it.
        let larger = other.lock("c").try_acquire().await.unwrap();
        assert!(other.lock("a").try_acquire().await.unwrap_err().is_busy());
        held.release().await.unwrap();
        is_waiting(&locker, "c").await;
        assert!(store.has("disLock:a") && store.has("disLock:b"));
        larger.release().await.unwrap();
    };
    let (set, ()) = tokio::join!(waiting, release);
    assert_eq!(names(&set.unwrap()), ["disLock:c", "disLock:b", "disLock:a"]);
    drained().await;
}

async fn a_set_given_up_while_it_waits_leaves_nothing(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let held = other.lock("b").acquire().await.unwrap();
    tokio::select! {
        set = all(&locker, KEYS).acquire() => unreachable!("{set:?}"),
        () = is_waiting(&locker, "b") => {}
    }
    drained().await;
    assert!(!store.has("disLock:a") && !store.has("disLock:c"));
    held.release().await.unwrap();
    wait::until_async(wait::HANG, async || store.locks().is_empty()).await;
    all(&other, KEYS).try_acquire().await.unwrap().release().await.unwrap();
}

/// Without `renew`, too; from then on its lease ends.
async fn what_is_held_while_others_are_waited_for_is_renewed(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let held = other.lock("b").renew().acquire().await.unwrap();
    let waiting = all(&locker, KEYS).expire(store.lease()).acquire();
    let release = async {
        is_waiting(&locker, "b").await;
        let life = || store.life("disLock:a").unwrap();
        let mut before = life();
        wait::until_async(wait::HANG, async || life() > std::mem::replace(&mut before, life()))
            .await;
        held.release().await.unwrap();
    };
    let (set, ()) = tokio::join!(waiting, release);
    let set = set.unwrap();
    // Each is as good as new.
    assert!(set.leases()[0].remaining() > store.lease() / 2 || !store.is_exact());
    let error = set.leases().lost().await;
    assert!(error.is_lost(), "{error}");
    set.release().await.unwrap_err();
    store.lose_all_data();
}

async fn the_terms_begin_with_the_last_lock(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let held = other.lock("b").acquire().await.unwrap();
    let request = all(&locker, KEYS).renew().max_hold(store.short()).min_hold(AMPLE);
    let started = Cell::new(None);
    let waiting = request.run(async {
        started.set(Some(Instant::now()));
        pending::<()>().await;
    });
    let release = async {
        is_waiting(&locker, "b").await;
        store.elapse(2 * store.short()).await;
        held.release().await.unwrap();
    };
    let (outcome, ()) = tokio::join!(waiting, release);
    let error = outcome.unwrap_err();
    assert!(error.is_max_hold_reached(), "{error}");
    // The clock that counts and this one may differ by nanoseconds.
    let held_for = started.take().unwrap().elapsed() + Duration::from_millis(5);
    assert!(held_for >= store.short(), "{held_for:?}");
    for key in KEYS {
        let life = store.life(&format!("disLock:{key}")).unwrap();
        assert!(life > AMPLE / 2, "{key} lives for {life:?}");
    }
    store.lose_all_data();
}

async fn a_lock_lost_while_others_are_waited_for_is_taken_again(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let held = other.lock("b").renew().acquire().await.unwrap();
    let waiting = all(&locker, KEYS).expire(store.lease()).renew().acquire();
    let release = async {
        is_waiting(&locker, "b").await;
        store.delete("disLock:a");
        wait::until_async(wait::HANG, async || store.has("disLock:a")).await;
        held.release().await.unwrap();
    };
    let (set, ()) = tokio::join!(waiting, release);
    let set = set.unwrap();
    assert!(set.leases().is_held() || !store.is_exact());
    set.release().await.unwrap();
    drained().await;
}

async fn one_lost_key_stops_the_body_and_frees_all(store: &Store) {
    let locker = store.locker().await;
    for lost in ["a", "c"] {
        let dropped = Cell::new(false);
        let body = async {
            let _end = OnDrop(|| dropped.set(store.has("disLock:a") || store.has("disLock:c")));
            store.delete(&format!("disLock:{lost}"));
            pending::<()>().await;
        };
        let request = all(&locker, KEYS).expire(store.lease()).renew();
        let error = request.run(body).await.unwrap_err();
        assert!(error.is_lost() && !error.is_body_finished(), "{error}");
        assert_eq!(error.key(), Some(&*format!("disLock:{lost}")));
        assert!(dropped.get(), "the body outlived its locks");
        // The others are released before the outcome.
        assert_eq!(store.locks(), [""; 0]);
    }
}

async fn one_revoked_key_stops_the_body_and_frees_all(store: &Store) {
    let locker = store.locker().await;
    for revoked in KEYS {
        let body = all(&locker, KEYS).renew().run(pending::<()>());
        let ask = async {
            let admin = locker.admin();
            wait::until_async(wait::HANG, async || store.locks().len() == 3).await;
            let holder = admin.holder(revoked).await.unwrap().unwrap();
            admin.revoke(&holder, "migration 42", LIMIT).await.unwrap();
        };
        let (outcome, ()) = tokio::join!(body, ask);
        let error = outcome.unwrap_err();
        assert!(error.is_revoked() && error.to_string().contains("migration 42"), "{error}");
        assert_eq!(error.key(), Some(&*format!("disLock:{revoked}")));
        wait::until_async(wait::HANG, async || store.locks().is_empty()).await;
    }
}

async fn calls_with_the_same_keys_in_any_order_all_end(store: &Store) {
    let (one, two, three) = (store.locker().await, store.locker().await, store.locker().await);
    let sections = Sections::default();
    let work = async |locker: &Locker, keys: [&str; 2]| {
        for _ in 0..10 {
            let set = all(locker, keys).acquire().await.unwrap();
            sections.enter_all(set.leases());
            yield_now().await;
            sections.leave_all(set.leases());
            set.release().await.unwrap();
        }
    };
    // Any two have a key in common.
    tokio::join!(
        work(&one, ["a", "b"]),
        work(&two, ["b", "c"]),
        work(&three, ["c", "a"]),
        work(&one, ["c", "b"])
    );
    sections.assert_sound();
    drained().await;
}

fn all<const N: usize>(locker: &Locker, keys: [&str; N]) -> LockRequest<Vec<LockKey>> {
    locker.lock_all(keys)
}

fn names(set: &LockSet) -> Vec<&str> {
    set.leases().iter().map(|lease| lease.key().as_str()).collect()
}

/// Returns once a call waits for this lock.
async fn is_waiting(locker: &Locker, key: &str) {
    let admin = locker.admin();
    wait::until_async(wait::HANG, async || !admin.queue(key).await.unwrap().is_empty()).await;
}

#[track_caller]
fn assert_refused(outcome: Result<(), LockError>, key: &str) {
    let error = outcome.unwrap_err();
    assert!(error.is_held_by_caller(), "{error}");
    assert_eq!(error.key(), Some(&*format!("disLock:{key}")));
}
