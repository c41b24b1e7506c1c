//! Permits: as many holders of a key as there are, in the order in which they came.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use lockable_runtime::{Lease, LockErrorKind, LockGuard, LockRequest, Locker};
use lockable_tests::sections::renewed;
use lockable_tests::{Sections, unless_busy};
use tokio::sync::Notify;
use tokio::task::LocalSet;
use tokio::time::Instant;

use crate::fixture::{AMPLE, LIMIT, Store, drained, in_time};

const KEY: &str = "k";

every_full_backend! { one_thread: [
    a_key_has_as_many_holders_as_permits,
    tokens_rise_from_permit_to_permit,
    permits_and_the_lock_of_their_key_are_apart,
    each_permit_is_released_by_itself,
    a_body_with_a_permit_gets_no_second_one,
    impossible_numbers_of_permits_are_refused,
    the_name_of_a_permit_is_no_key,
    the_longest_key_has_permits,
    permits_of_unlike_number_share_their_names,
    one_permit_is_the_first_of_a_larger_number,
    so_many_calls_start_in_a_second,
    a_dropped_guard_gives_its_local_permit_back,
    all_permits_are_held_by_one_call,
    all_permits_are_tried_and_let_go,
    all_permits_are_not_all_beside_a_larger_number,
    who_has_a_permit_may_not_wait_for_all,
] and_sentinel: [
    waiters_of_all_processes_are_served,
    a_dead_holder_costs_one_permit,
    a_lost_permit_stops_its_holder_alone,
    a_call_that_stops_waiting_leaves_nothing,
    a_limit_ends_the_wait_for_a_permit,
    waiters_for_a_lock_and_for_permits_get_their_own,
    a_process_asks_at_most_for_all_permits,
    permits_are_renewed,
    a_call_for_all_permits_waits_until_the_others_are_out,
    calls_for_all_permits_do_not_hold_halves,
    a_lost_permit_stops_the_holder_of_all,
] and_order: [
    a_call_for_all_permits_comes_before_later_ones,
]}

fn one_of(locker: &Locker, permits: u32) -> LockRequest {
    locker.lock(KEY).permits(permits)
}

async fn take(locker: &Locker, permits: u32) -> Option<LockGuard> {
    unless_busy(one_of(locker, permits).try_acquire().await)
}

async fn take_all(locker: &Locker, permits: u32) -> Vec<LockGuard> {
    let mut guards = Vec::new();
    for _ in 0..permits {
        guards.push(take(locker, permits).await.unwrap());
    }
    guards
}

fn names(guards: &[LockGuard]) -> Vec<&str> {
    guards.iter().map(|guard| guard.lease().key().as_str()).collect()
}

async fn a_key_has_as_many_holders_as_permits(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let mut guards = vec![take(&locker, 3).await.unwrap(), take(&other, 3).await.unwrap()];
    guards.push(take(&locker, 3).await.unwrap());
    assert_eq!(names(&guards), ["disLock:{k}#1", "disLock:{k}#2", "disLock:{k}#3"]);
    assert!(take(&locker, 3).await.is_none() && take(&other, 3).await.is_none());
    guards.remove(1).release().await.unwrap();
    let next = take(&other, 3).await.unwrap();
    assert_eq!(next.lease().key().as_str(), "disLock:{k}#2");
    assert!(take(&other, 3).await.is_none());
    drop((guards, next));
    drained().await;
    assert!(store.locks().is_empty(), "{:?}", store.locks());
}

async fn tokens_rise_from_permit_to_permit(store: &Store) {
    let lockers = [store.locker().await, store.locker().await];
    let mut latest = 0;
    for round in 0..20 {
        let guards = take_all(&lockers[round % 2], 3).await;
        for guard in guards {
            let token = u64::from(guard.lease().fencing_token());
            assert!(token > latest, "{token} after {latest}");
            latest = token;
            guard.release().await.unwrap();
        }
    }
}

async fn permits_and_the_lock_of_their_key_are_apart(store: &Store) {
    let locker = store.locker().await;
    let lock = locker.lock(KEY).acquire().await.unwrap();
    let guards = take_all(&locker, 2).await;
    assert!(locker.lock(KEY).try_acquire().await.unwrap_err().is_busy());
    lock.release().await.unwrap();
    assert!(take(&locker, 2).await.is_none());
    drop(guards);
}

async fn each_permit_is_released_by_itself(store: &Store) {
    let locker = store.locker().await;
    let mut guards = take_all(&locker, 4).await;
    for left in (0..4).rev() {
        guards.pop().unwrap().release().await.unwrap();
        assert_eq!(store.locks().len(), left, "{:?}", store.locks());
    }
}

async fn a_body_with_a_permit_gets_no_second_one(store: &Store) {
    let locker = store.locker().await;
    let body = async {
        let error = one_of(&locker, 3).acquire().await.unwrap_err();
        assert!(error.is_held_by_caller(), "{error}");
        locker.lock(KEY).try_acquire().await.unwrap().release().await.unwrap();
    };
    one_of(&locker, 3).run(body).await.unwrap();
}

async fn impossible_numbers_of_permits_are_refused(store: &Store) {
    let locker = store.locker().await;
    let before = store.requests();
    for count in [0, 65, u32::MAX] {
        let error = one_of(&locker, count).acquire().await.unwrap_err();
        assert!(
            error.kind() == LockErrorKind::InvalidOption && error.to_string().contains("`permits`"),
            "{error}"
        );
    }
    for (request, option) in
        [(one_of(&locker, 2).fair(), "`fair`"), (one_of(&locker, 2).once(), "`once`")]
    {
        let error = request.acquire().await.unwrap_err();
        assert!(
            error.kind() == LockErrorKind::InvalidOption && error.to_string().contains(option),
            "{error}"
        );
    }
    assert_eq!(store.requests(), before);
}

async fn the_name_of_a_permit_is_no_key(store: &Store) {
    let locker = store.locker().await;
    for key in ["{k}#1", "{k}#0", "{k}:a#64"] {
        let error = locker.lock(key).acquire().await.unwrap_err();
        assert!(
            error.kind() == LockErrorKind::InvalidKey && error.to_string().contains("`permits`"),
            "{error}"
        );
    }
    for key in ["k#1", "{k}#65", "{k}#01", "{k}#1:"] {
        locker.lock(key).acquire().await.unwrap().release().await.unwrap();
    }
}

/// Method: calls that wait, for one and for all, whose key leaves no space for more than the name of a permit.
async fn the_longest_key_has_permits(store: &Store) {
    let locker = store.locker().await;
    let longest = "k".repeat(1_024 - "disLock:{}#64".len());
    assert!(locker.lock(format!("{longest}k")).permits(2).acquire().await.is_err());
    let one = || locker.lock(&longest).permits(2).acquire();
    let held = [one().await.unwrap(), one().await.unwrap()];
    let all = tokio::spawn(locker.lock(&longest).all_permits(2).acquire());
    for guard in held {
        guard.release().await.unwrap();
    }
    all.await.unwrap().unwrap().release().await.unwrap();
    drained().await;
}

async fn permits_of_unlike_number_share_their_names(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let few = take_all(&locker, 2).await;
    assert!(take(&locker, 2).await.is_none() && take(&other, 2).await.is_none());
    let more = [take(&locker, 4).await.unwrap(), take(&other, 4).await.unwrap()];
    assert_eq!(names(&more), ["disLock:{k}#3", "disLock:{k}#4"]);
    assert!(take(&locker, 4).await.is_none() && take(&other, 4).await.is_none());
    drop(few);
    drained().await;
    assert!(take(&other, 2).await.is_some());
}

/// An operator lowers the number to one while others count more.
async fn one_permit_is_the_first_of_a_larger_number(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let one = take(&locker, 1).await.unwrap();
    assert_eq!(one.lease().key().as_str(), "disLock:{k}#1");
    assert!(take(&locker, 1).await.is_none() && take(&other, 1).await.is_none());
    let second = take(&other, 2).await.unwrap();
    assert!(take(&other, 2).await.is_none());
    let waiting = tokio::spawn(one_of(&other, 1).wait(LIMIT).acquire());
    one.release().await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();
    let alone = locker.lock(KEY).all_permits(1).wait(LIMIT).acquire().await;
    assert_eq!(alone.unwrap_err().kind(), LockErrorKind::InvalidOption);
    second.release().await.unwrap();
    let alone = locker.lock(KEY).all_permits(1).wait(LIMIT).acquire().await.unwrap();
    assert_eq!(alone.leases().len(), 1);
    assert!(take(&other, 1).await.is_none());
    let more = take(&other, 2).await.unwrap();
    assert_eq!(more.lease().key().as_str(), "disLock:{k}#2");
    drop(more);
    alone.release().await.unwrap();
    store.eventually(|| store.locks().is_empty()).await;
}

async fn so_many_calls_start_in_a_second(store: &Store) {
    let locker = store.locker().await;
    let started = Instant::now();
    for _ in 0..4 {
        let request = one_of(&locker, 2).min_hold(store.short()).wait(LIMIT);
        request.acquire().await.unwrap().release().await.unwrap();
    }
    assert!(started.elapsed() >= store.short(), "{:?}", started.elapsed());
    store.elapse(store.short()).await;
}

async fn a_dropped_guard_gives_its_local_permit_back(store: &Store) {
    let locker = store.locker().await;
    for _ in 0..8 {
        let guards = take_all(&locker, 2).await;
        drop(guards);
    }
    // Without a holder all lanes would be new ones.
    let _held = take(&locker, 2).await.unwrap();
    for _ in 0..8 {
        drop(take(&locker, 2).await.unwrap());
    }
}

async fn waiters_of_all_processes_are_served(store: &Store) {
    let guards = take_all(&store.locker().await, 2).await;
    let served = Cell::new(0);
    let lockers = [store.locker().await, store.locker().await, store.locker().await];
    let wait = async |locker: &Locker| {
        let guard = one_of(locker, 2).wait(LIMIT).acquire().await.unwrap();
        served.set(served.get() + 1);
        guard.release().await.unwrap();
    };
    let [one, two, three] = &lockers;
    let releases = async {
        store.elapse(Duration::from_millis(50)).await;
        assert_eq!(served.get(), 0);
        for guard in guards {
            guard.release().await.unwrap();
        }
    };
    tokio::join!(wait(one), wait(two), wait(three), wait(one), releases);
    assert_eq!(served.get(), 4);
    store.eventually(|| store.locks().is_empty()).await;
}

async fn a_dead_holder_costs_one_permit(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let live = take(&other, 2).await.unwrap();
    let dead = in_time(|| one_of(&locker, 2).expire(store.short())).await;
    let name = dead.lease().key().as_str().to_owned();
    std::mem::forget(dead);
    let next = one_of(&other, 2).wait(LIMIT).acquire().await.unwrap();
    assert_eq!(next.lease().key().as_str(), name);
    assert!(live.lease().is_held() && next.lease().is_held());
}

async fn a_lost_permit_stops_its_holder_alone(store: &Store) {
    let locker = store.locker().await;
    let guards = take_all(&locker, 2).await;
    store.delete(names(&guards)[0]);
    let [lost, kept] = &guards[..] else { unreachable!("two permits") };
    assert!(lost.lease().extend(AMPLE).await.is_err_and(|error| error.is_lost()));
    kept.lease().extend(AMPLE).await.unwrap();
}

async fn a_call_that_stops_waiting_leaves_nothing(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let guards = take_all(&locker, 2).await;
    for _ in 0..3 {
        let waiting = one_of(&other, 2).wait(LIMIT).acquire();
        assert!(tokio::time::timeout(Duration::from_millis(30), waiting).await.is_err());
    }
    drained().await;
    drop(guards);
    drained().await;
    store.eventually(|| store.locks().is_empty()).await;
    drop(take_all(&other, 2).await);
}

async fn a_limit_ends_the_wait_for_a_permit(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let guards = take_all(&locker, 2).await;
    for waiter in [&locker, &other] {
        for limit in [Duration::ZERO, Duration::from_millis(50)] {
            let error = one_of(waiter, 2).wait(limit).acquire().await.unwrap_err();
            assert!(error.is_wait_limit_reached() && error.key() == Some("disLock:{k}"), "{error}");
        }
    }
    drop(guards);
}

/// A plain lock and permits of one key, with and without a hash tag, have waiters at the same time.
async fn waiters_for_a_lock_and_for_permits_get_their_own(store: &Store) {
    for key in ["k", "{shop}:export", "a{b}"] {
        let (locker, other) = (store.locker().await, store.locker().await);
        let permits = |locker: &Locker| locker.lock(key).permits(2).wait(LIMIT);
        let lock = locker.lock(key).acquire().await.unwrap();
        let guards =
            [permits(&locker).acquire().await.unwrap(), permits(&locker).acquire().await.unwrap()];
        let name = lock.lease().key().as_str().to_owned();
        let (order, granted) = (Cell::new(0), Notify::new());
        let plain = async {
            let guard = other.lock(key).wait(LIMIT).acquire().await.unwrap();
            assert_eq!((guard.lease().key().as_str(), order.get()), (&*name, 2));
            guard
        };
        let permit = async {
            let guard = permits(&other).acquire().await.unwrap();
            assert!(guard.lease().key().as_str().contains('#'));
            assert_eq!(order.replace(1), 0);
            granted.notify_one();
            guard
        };
        let releases = async {
            store.elapse(Duration::from_millis(50)).await;
            let [one, two] = guards;
            one.release().await.unwrap();
            granted.notified().await;
            two.release().await.unwrap();
            store.elapse(Duration::from_millis(50)).await;
            order.set(2);
            lock.release().await.unwrap();
        };
        let (plain, permit, ()) = tokio::join!(plain, permit, releases);
        permit.release().await.unwrap();
        plain.release().await.unwrap();
        store.eventually(|| store.locks().is_empty()).await;
    }
}

async fn a_process_asks_at_most_for_all_permits(store: &Store) {
    let locker = store.locker().await;
    let sections = Rc::new(Sections::default());
    let crowd = LocalSet::new();
    for _ in 0..60 {
        let (locker, sections) = (locker.clone(), Rc::clone(&sections));
        crowd.spawn_local(async move {
            let guard = one_of(&locker, 3).wait(LIMIT).acquire().await.unwrap();
            assert!(guard.lease().key().as_str().ends_with(['1', '2', '3']));
            sections.enter(&guard);
            tokio::task::yield_now().await;
            sections.leave(&guard);
            guard.release().await.unwrap();
        });
    }
    crowd.await;
    sections.assert_sound();
    assert_eq!(sections.finished(), 60);
    store.eventually(|| store.locks().is_empty()).await;
}

async fn permits_are_renewed(store: &Store) {
    let locker = store.locker().await;
    let guard = one_of(&locker, 2).expire(store.lease()).renew().acquire().await.unwrap();
    renewed(&guard).await;
    guard.release().await.unwrap();
}

async fn all_permits_are_held_by_one_call(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let before = take(&locker, 3).await.unwrap();
    let token = before.lease().fencing_token();
    before.release().await.unwrap();
    let all = locker.lock(KEY).all_permits(3).try_acquire().await.unwrap();
    let names: Vec<_> = all.leases().iter().map(|lease| lease.key().as_str()).collect();
    let expected = [1, 2, 3].map(|number| format!("disLock:{{k}}#{number}"));
    assert_eq!(names, expected);
    assert!(all.leases().iter().map(Lease::fencing_token).max() > Some(token));
    for locker in [&locker, &other] {
        assert!(take(locker, 3).await.is_none());
        assert!(locker.lock(KEY).all_permits(3).try_acquire().await.unwrap_err().is_busy());
    }
    all.release().await.unwrap();
    store.eventually(|| store.locks().is_empty()).await;
}

async fn all_permits_are_tried_and_let_go(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let one = take(&locker, 3).await.unwrap();
    for locker in [&locker, &other] {
        assert!(locker.lock(KEY).all_permits(3).try_acquire().await.unwrap_err().is_busy());
        assert_eq!(store.locks(), ["disLock:{k}#1"]);
    }
    one.release().await.unwrap();
    let error = locker.lock(KEY).all_permits(0).acquire().await.unwrap_err();
    assert!(error.kind() == LockErrorKind::InvalidOption, "{error}");
}

/// The number is a part of the contract, and a deploy that changes it is noticed.
async fn all_permits_are_not_all_beside_a_larger_number(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let mut guards = take_all(&other, 4).await;
    let last = guards.pop().unwrap();
    for guard in guards {
        guard.release().await.unwrap();
    }
    let error = locker.lock(KEY).all_permits(3).acquire().await.unwrap_err();
    assert!(error.kind() == LockErrorKind::InvalidOption, "{error}");
    assert!(error.to_string().contains("more than 3 permits"), "{error}");
    store.eventually(|| store.locks() == ["disLock:{k}#4"]).await;
    last.release().await.unwrap();
    locker.lock(KEY).all_permits(3).acquire().await.unwrap().release().await.unwrap();
}

async fn who_has_a_permit_may_not_wait_for_all(store: &Store) {
    let locker = store.locker().await;
    let body = async { locker.lock(KEY).all_permits(3).acquire().await.unwrap_err() };
    let error = one_of(&locker, 3).run(body).await.unwrap();
    assert!(error.is_held_by_caller(), "{error}");
    let body = async { one_of(&locker, 3).acquire().await.unwrap_err() };
    let error = locker.lock(KEY).all_permits(3).run(body).await.unwrap();
    assert!(error.is_held_by_caller(), "{error}");
    let body = async { locker.lock(KEY).all_permits(3).acquire().await.unwrap_err() };
    let error = locker.lock(KEY).all_permits(3).run(body).await.unwrap();
    assert!(error.is_held_by_caller(), "{error}");
}

async fn a_call_for_all_permits_waits_until_the_others_are_out(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let guards = vec![take(&locker, 2).await.unwrap(), take(&other, 2).await.unwrap()];
    let out = Cell::new(false);
    let all = async {
        let all = other.lock(KEY).all_permits(2).wait(LIMIT).acquire().await.unwrap();
        assert!(out.get() && all.leases().is_held());
        all.release().await.unwrap();
    };
    let releases = async {
        for guard in guards {
            store.elapse(Duration::from_millis(30)).await;
            out.set(guard.lease().key().as_str().ends_with('2'));
            guard.release().await.unwrap();
        }
    };
    tokio::join!(all, releases);
    store.eventually(|| store.locks().is_empty()).await;
}

/// A call is in the queue of the permits, as far as that can be seen.
async fn one_is_queued(store: &Store) {
    let is_seen = || store.locks().iter().any(|name| name.contains("queue:#:"));
    store.elapse(Duration::from_millis(50)).await;
    while store.requests() > 0 && !is_seen() {
        store.elapse(Duration::from_millis(1)).await;
    }
}

async fn a_call_for_all_permits_comes_before_later_ones(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let one = take(&locker, 2).await.unwrap();
    let order = Cell::new(0);
    let all = async {
        let all = other.lock(KEY).all_permits(2).wait(LIMIT).acquire().await.unwrap();
        assert_eq!(order.replace(1), 0);
        all.release().await.unwrap();
    };
    let later = async {
        one_is_queued(store).await;
        let next = one_of(&locker, 2).wait(LIMIT).acquire();
        let release = async {
            store.elapse(Duration::from_millis(50)).await;
            one.release().await.unwrap();
        };
        let (next, ()) = tokio::join!(next, release);
        assert_eq!(order.get(), 1);
        next.unwrap().release().await.unwrap();
    };
    tokio::join!(all, later);
    store.eventually(|| store.locks().is_empty()).await;
}

async fn calls_for_all_permits_do_not_hold_halves(store: &Store) {
    let lockers = [store.locker().await, store.locker().await, store.locker().await];
    let sections = Sections::default();
    let call = async |locker: &Locker| {
        for _ in 0..3 {
            let all = locker.lock(KEY).all_permits(3).wait(LIMIT).acquire().await.unwrap();
            sections.enter_all(all.leases());
            tokio::task::yield_now().await;
            sections.leave_all(all.leases());
            all.release().await.unwrap();
        }
    };
    let [one, two, three] = &lockers;
    tokio::join!(call(one), call(two), call(three), call(one));
    sections.assert_sound();
    store.eventually(|| store.locks().is_empty()).await;
}

async fn a_lost_permit_stops_the_holder_of_all(store: &Store) {
    let locker = store.locker().await;
    let body = async {
        store.delete("disLock:{k}#2");
        std::future::pending::<()>().await;
    };
    let request = locker.lock(KEY).all_permits(2).expire(store.lease()).renew();
    let error = request.run(body).await.unwrap_err();
    assert!(error.is_lost() && error.key() == Some("disLock:{k}#2"), "{error}");
    store.eventually(|| store.locks().is_empty()).await;
}
