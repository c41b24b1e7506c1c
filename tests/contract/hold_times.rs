//! The shortest and the longest that a lock is held.

use lockable_runtime::LockErrorKind;
use lockable_tests::unless_busy;
use std::cell::Cell;
use std::future::{pending, poll_fn};
use std::panic::resume_unwind;
use std::task::{Context, Poll};
use std::time::Duration;

use lockable_runtime::{LockGuard, LockRequest, Locker, OnLost};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::body::{OnDrop, caught};
use crate::fixture::{
    AMPLE, KEY, LIMIT, NAME, Store, assert_quiet, at_once, drained, hold, run_in_time,
};

every_backend! { one_thread: [
    a_lock_is_taken_for_its_minimum_hold,
    a_minimum_hold_outlasts_every_end_of_a_call,
    a_minimum_hold_that_is_over_delays_nothing,
    a_minimum_hold_may_last_the_whole_lease,
    a_renewal_does_not_make_a_minimum_hold_longer,
    a_minimum_hold_makes_nothing_again_that_was_lost,
    contradicting_hold_times_are_refused_before_anything_is_sent,
    a_body_is_stopped_at_its_maximum_hold,
    a_body_is_not_polled_past_its_maximum_hold,
    before_its_maximum_hold_a_body_gives_its_value,
    a_guard_is_lost_at_its_maximum_hold,
    a_maximum_hold_bounds_what_remains,
    blocking_past_maximum_hold_and_lease_is_a_loss,
    minimum_and_maximum_holds_count_from_the_grant,
] }

async fn a_lock_is_taken_for_its_minimum_hold(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let start = Instant::now();
    let guard = at_least(&locker, KEY, store.short()).acquire().await.unwrap();
    let token = guard.lease().fencing_token();
    guard.release().await.unwrap();
    let next = loop {
        if let Some(next) = unless_busy(other.lock(KEY).try_acquire().await) {
            break next;
        }
        store.elapse(store.short() / 50).await;
    };
    let passed = start.elapsed();
    assert!(passed >= store.short(), "{passed:?}");
    assert!(passed < 2 * store.short() || !store.is_exact(), "{passed:?}");
    assert!(next.lease().fencing_token() > token);
}

/// One lock for each way in which a hold ends.
async fn a_minimum_hold_outlasts_every_end_of_a_call(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let least = AMPLE;
    let request = |key: &str| at_least(&locker, key, least);
    request("released").acquire().await.unwrap().release().await.unwrap();
    drop(request("dropped").acquire().await.unwrap());
    request("completed").run(async {}).await.unwrap();
    request("failed").run(async { Err::<(), _>(()) }).await.unwrap().unwrap_err();
    let panicking = async { resume_unwind(Box::new(())) };
    assert!(caught(request("panicked").run::<_>(panicking)).await.is_err());
    let limited = request("stopped").renew().max_hold(store.short()).run(pending::<()>());
    assert!(limited.await.unwrap_err().is_max_hold_reached());
    let (send, started) = oneshot::channel();
    let body = async {
        send.send(()).unwrap();
        pending::<()>().await;
    };
    let aborted = tokio::spawn(request("aborted").run(body));
    started.await.unwrap();
    aborted.abort();
    assert!(aborted.await.unwrap_err().is_cancelled());
    drained().await;
    assert_eq!(store.locks().len(), 7);
    for name in store.locks() {
        let life = store.life(&name).unwrap();
        assert!(life > least / 2 && life <= least, "{name} lives for {life:?}");
        let key = name.strip_prefix("disLock:").unwrap();
        for locker in [&locker, &other] {
            assert!(locker.lock(key).try_acquire().await.unwrap_err().is_busy(), "{name}");
        }
    }
    store.lose_all_data();
}

async fn a_minimum_hold_that_is_over_delays_nothing(store: &Store) {
    let locker = store.locker().await;
    let guard = at_least(&locker, KEY, store.short() / 2).acquire().await.unwrap();
    store.elapse(store.short()).await;
    guard.release().await.unwrap();
    assert!(!store.has(NAME));
    at_least(&locker, KEY, Duration::ZERO).try_run(async {}).await.unwrap();
    assert!(!store.has(NAME));
}

async fn a_minimum_hold_may_last_the_whole_lease(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let guard = locker.lock(KEY).min_hold(AMPLE).acquire().await.unwrap();
    let start = Instant::now();
    guard.release().await.unwrap();
    let life = store.life(NAME).unwrap();
    assert!(life <= AMPLE && life + start.elapsed() > AMPLE * 9 / 10, "{life:?}");
    assert!(other.lock(KEY).try_acquire().await.unwrap_err().is_busy());
    store.delete(NAME);
}

async fn a_renewal_does_not_make_a_minimum_hold_longer(store: &Store) {
    let locker = store.locker().await;
    let request = locker.lock(KEY).expire(store.lease()).renew().min_hold(store.lease());
    let guard = request.acquire().await.unwrap();
    let lease = guard.lease().clone();
    guard.release().await.unwrap();
    // It may be over when it is looked at.
    let life = || store.life(NAME).unwrap_or_default();
    let (first, before, start) = (life(), store.requests(), Instant::now());
    // A lease of this length is renewed before that.
    store.elapse(store.lease() / 2).await;
    let passed = start.elapsed();
    let rest = life();
    let is_shorter = rest.is_zero() || rest + passed <= first + Duration::from_millis(2);
    assert!(is_shorter, "{rest:?} after {passed:?} of {first:?}");
    assert!(lease.extend(20 * store.lease()).await.is_err());
    assert!(life() <= rest);
    assert_eq!(store.requests(), before, "it is still renewed");
    store.delete(NAME);
}

async fn a_minimum_hold_makes_nothing_again_that_was_lost(store: &Store) {
    let locker = store.locker().await;
    let renewed = || locker.lock(KEY).expire(store.lease()).renew().min_hold(store.lease());
    let ends: [fn(LockGuard); 2] = [drop, |guard| drop(at_once(guard.release()))];
    for end in ends {
        // Before anybody has noticed.
        let guard = renewed().acquire().await.unwrap();
        store.delete(NAME);
        end(guard);
        drained().await;
        assert_eq!(store.locks(), [""; 0]);
    }
    let body = async {
        store.put_foreign(NAME, 20 * store.lease());
        pending::<()>().await;
    };
    assert!(renewed().run(body).await.unwrap_err().is_lost());
    drained().await;
    assert!(store.life(NAME).unwrap() > 10 * store.lease());
    store.delete(NAME);
}

async fn contradicting_hold_times_are_refused_before_anything_is_sent(store: &Store) {
    let locker = store.locker().await;
    let before = store.requests();
    let (short, long) = (Duration::from_secs(1), 2 * AMPLE);
    let request = || locker.lock(KEY);
    let refused = [
        ("`max_hold`", request().max_hold(short)),
        ("`renew`", request().max_hold(long)),
        ("`max_hold`", request().renew().max_hold(Duration::ZERO)),
        ("`min_hold`", request().min_hold(long)),
        ("`min_hold`", request().min_hold(long).expire(short)),
        ("`min_hold`", request().expire(short).min_hold(Duration::from_nanos(1_000_000_001))),
        ("`min_hold`", request().renew().max_hold(long).min_hold(Duration::MAX)),
        ("`expire`", request().expire(Duration::ZERO).min_hold(long)),
    ];
    for (name, request) in refused {
        let error = request.try_acquire().await.unwrap_err();
        assert!(
            error.kind() == LockErrorKind::InvalidOption && error.to_string().contains(name),
            "{error}"
        );
        assert_eq!(error.key(), Some(NAME));
    }
    let never = async { unreachable!("the body runs") };
    assert!(
        request().max_hold(short).run::<_>(never).await.unwrap_err().kind()
            == LockErrorKind::InvalidOption
    );
    assert_eq!((store.requests(), store.keyspace()), (before, vec![]));
}

async fn a_body_is_stopped_at_its_maximum_hold(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    // Shorter than the lease, also for a body that may finish, and longer.
    let cases = [
        (AMPLE, store.short(), OnLost::Cancel),
        (AMPLE, store.short(), OnLost::Finish),
        (store.lease(), store.lease() * 5 / 4, OnLost::Cancel),
    ];
    // The last one takes long where time is real.
    for (expire, most, on_lost) in &cases[..if store.is_exact() { 3 } else { 2 }] {
        let (start, in_time) = (Instant::now(), Cell::new(false));
        let end = OnDrop(|| in_time.set(store.has(NAME)));
        let body = async {
            let _end = end;
            pending::<()>().await;
        };
        let request = at_most(&locker, *expire, *most).on_lost(*on_lost);
        let error = request.run(body).await.unwrap_err();
        assert!(error.is_max_hold_reached() && !error.is_lost(), "{error}");
        assert!(!error.is_body_finished() && error.to_string().contains("`max_hold`"), "{error}");
        assert_eq!(error.key(), Some(NAME));
        assert!(start.elapsed() >= *most);
        assert!(in_time.get(), "the body outlived its lock");
        // At once.
        assert!(!store.has(NAME));
        hold(&other).await.release().await.unwrap();
    }
    assert_quiet(store).await;
}

async fn a_body_is_not_polled_past_its_maximum_hold(store: &Store) {
    let (locker, polls) = (store.locker().await, Cell::new(0));
    let poll = |cx: &mut Context<'_>| {
        polls.set(polls.get() + 1);
        store.block(store.short());
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    };
    let request = || at_most(&locker, AMPLE, store.short());
    let outcome = run_in_time(request, async || poll_fn(poll).await).await;
    assert!(outcome.unwrap_err().is_max_hold_reached());
    assert_eq!(polls.get(), 1);
}

async fn before_its_maximum_hold_a_body_gives_its_value(store: &Store) {
    let locker = store.locker().await;
    let body = async {
        store.elapse(store.short()).await;
        42
    };
    let request = || at_most(&locker, AMPLE, LIMIT);
    assert_eq!(request().run(body).await.unwrap(), 42);
    assert!(!store.has(NAME));
    request().try_acquire().await.unwrap().release().await.unwrap();
    // One that did not ask for the time until it was over held its lock all the while.
    let brief = || at_most(&locker, AMPLE, store.short());
    run_in_time(brief, async || store.block(store.short() * 3 / 2)).await.unwrap();
    let endless = at_most(&locker, store.lease(), Duration::MAX);
    endless.try_run(async {}).await.unwrap();
}

async fn a_guard_is_lost_at_its_maximum_hold(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let most = store.short();
    let start = Instant::now();
    let first = at_most(&locker, store.lease(), most).acquire().await.unwrap();
    let lease = first.lease();
    for _ in 0..2 {
        let error = lease.lost().await;
        assert!(error.is_max_hold_reached() && !error.is_lost(), "{error}");
        assert_eq!(error.key(), Some(NAME));
    }
    assert!(start.elapsed() >= most);
    assert!(
        !first.lease().is_held() && !first.lease().is_lost() && first.lease().remaining().is_zero()
    );
    assert!(first.lease().extend(20 * store.lease()).await.unwrap_err().is_max_hold_reached());
    // It is this holder's all the same, and ends with its lease.
    assert!(store.has(NAME) && other.lock(KEY).try_acquire().await.unwrap_err().is_busy());
    // No renewal comes any more: the lock ends within one lease.
    let (before, life) = (store.requests(), store.life(NAME).unwrap());
    assert!(life <= store.lease());
    store.elapse(store.lease() / 2).await;
    assert_eq!(store.requests(), before, "it is still renewed");
    assert!(store.life(NAME).unwrap_or_default() < life);
    drop(first);
    let second = at_most(&locker, AMPLE, store.short()).try_acquire().await.unwrap();
    assert!(second.lease().lost().await.is_max_hold_reached());
    second.release().await.unwrap();
    assert!(!store.has(NAME));
}

async fn a_maximum_hold_bounds_what_remains(store: &Store) {
    let guard = at_most(&store.locker().await, AMPLE, LIMIT).acquire().await.unwrap();
    assert!(guard.lease().is_held() && guard.lease().remaining() <= LIMIT);
    guard.lease().extend(2 * AMPLE).await.unwrap();
    assert!(guard.lease().is_held() && guard.lease().remaining() <= LIMIT);
    guard.release().await.unwrap();
    assert!(!store.has(NAME));
}

async fn blocking_past_maximum_hold_and_lease_is_a_loss(store: &Store) {
    let locker = store.locker().await;
    let body = async || {
        // So that no renewal makes it last longer.
        store.put_foreign(NAME, store.short());
        store.block(store.short());
    };
    let outcome = run_in_time(|| at_most(&locker, store.short(), store.short() / 2), body).await;
    let error = outcome.unwrap_err();
    assert!(error.is_lost() && error.is_body_finished(), "{error}");
    store.delete(NAME);
}

async fn minimum_and_maximum_holds_count_from_the_grant(store: &Store) {
    let locker = store.locker().await;
    let (least, most) = (2 * store.short(), store.short());
    let (start, granted) = (Instant::now(), Cell::new(Duration::ZERO));
    let body = async || {
        granted.set(start.elapsed());
        pending::<()>().await;
    };
    let outcome = run_in_time(|| at_most(&locker, AMPLE, most).min_hold(least), body).await;
    assert!(outcome.unwrap_err().is_max_hold_reached());
    let life = store.life(NAME).unwrap_or_default();
    // The request for the grant may have taken its time, and the store may count in milliseconds.
    let most = least.saturating_sub(most) + granted.get() + Duration::from_millis(2);
    assert!(life <= most, "{life:?} of {most:?}");
    store.pass(NAME).await;
    assert!(start.elapsed() >= least);
}

/// A request with a lease longer than its minimum hold.
fn at_least(locker: &Locker, key: &str, least: Duration) -> LockRequest {
    locker.lock(key).expire(2 * AMPLE).min_hold(least)
}

fn at_most(locker: &Locker, expire: Duration, most: Duration) -> LockRequest {
    locker.lock(KEY).expire(expire).renew().max_hold(most)
}
