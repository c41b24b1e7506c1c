//! A holder hears of the loss of its lock, once and for all.

use std::cell::Cell;
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use lockable_runtime::{Lease, LockError, LockGuard, Locker, OnLost, distributed_lock};
use lockable_tests::unless_busy;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, timeout};

use crate::body::OnDrop;
use crate::cancellation::give_up_after;
use crate::fixture::{
    AMPLE, Harm, KEY, LIMIT, NAME, Redis, Store, assert_quiet, at_once, drained, hold,
    hold_renewed, hold_shortly, in_time,
};

every_backend! { one_thread: [
    a_released_lock_has_no_loss,
    every_waiter_hears_of_the_loss,
    the_end_of_a_lease_is_signalled_before_it,
    the_signal_before_the_end_knows_every_end,
    a_loss_stays_while_later_holders_come_and_go,
    a_body_is_not_polled_after_a_refused_renewal,
    a_body_may_finish_after_a_refused_renewal,
    a_body_that_may_finish_knows_of_its_loss,
    a_lease_is_over_after_its_body,
] and_sentinel: [
    a_holder_hears_of_its_loss_at_its_deadline,
    a_holder_hears_of_a_refused_renewal,
    a_refused_holder_stays_lost,
    a_stopped_body_is_dropped_before_the_next_holder,
] }

every_claim! { redis_alone: Redis, one_thread, [
    a_lock_that_comes_back_stays_lost,
    blocking_over_a_refused_renewal_is_reported_as_completed,
    a_loss_is_found_when_the_connection_returns,
    a_loss_is_found_after_the_locker_was_dropped,
] }

async fn a_holder_hears_of_its_loss_at_its_deadline(store: &Store) {
    let guard = hold_shortly(store, &store.locker().await).await;
    let (start, rest) = (Instant::now(), guard.lease().remaining());
    let lease = guard.lease().clone();
    let (by_guard, by_lease) = tokio::join!(guard.lease().lost(), lease.lost());
    // The holder's clock and this one may count nanoseconds in a different way.
    let passed = start.elapsed() + Duration::from_millis(1);
    assert!(passed >= rest, "{passed:?} of {rest:?}");
    assert!(passed < 2 * store.short() || !store.is_exact(), "{passed:?}");
    for error in [by_guard, by_lease] {
        assert!(error.is_lost() && !error.is_body_finished(), "{error}");
        assert!(error.to_string().contains("its lease ended"), "{error}");
        assert_eq!(error.key(), Some(NAME));
    }
    assert!(guard.lease().is_lost() && lease.is_lost() && !lease.is_held());
}

async fn a_holder_hears_of_a_refused_renewal(store: &Store) {
    let locker = store.locker().await;
    let harms = [(Harm::Deleted, "it has no holder"), (Harm::Taken, "another holder has it")];
    for (harm, why) in harms {
        let guard = hold_renewed(store, &locker).await;
        // So that its deadline is far.
        guard.lease().extend(20 * store.lease()).await.unwrap();
        let lease = guard.lease().clone();
        harm.befall(store);
        let losses = async { tokio::join!(guard.lease().lost(), lease.lost()) };
        let (by_guard, by_lease) = timeout(LIMIT, losses).await.unwrap();
        for error in [by_guard, by_lease] {
            assert!(error.is_lost() && error.to_string().contains(why), "{error}");
            assert_eq!(error.is_taken(), matches!(harm, Harm::Taken), "{error}");
            assert_eq!(error.key(), Some(NAME));
        }
        assert!(guard.lease().is_lost() && guard.lease().remaining().is_zero());
        store.delete(NAME);
    }
}

/// Goal: a signal that comes when the lease of a released lock would have ended.
/// Method: some wait since before the release and some since after it, past that time.
async fn a_released_lock_has_no_loss(store: &Store) {
    let locker = store.locker().await;
    let (mut leases, mut losses) = (Vec::new(), JoinSet::new());
    let ends: [fn(LockGuard); 2] = [drop, |guard| drop(at_once(guard.release()))];
    for end in ends {
        let guard = hold_shortly(store, &locker).await;
        let [lease, same] = [guard.lease(), guard.lease()].map(Clone::clone);
        leases.push(guard.lease().clone());
        losses.spawn(async move { lease.lost().await });
        yield_now().await;
        end(guard);
        if same.is_lost() {
            // Its lease ended before.
            assert!(!store.is_exact());
            return;
        }
        losses.spawn(async move { same.lost().await });
        // So that the next one finds it free.
        drained().await;
    }
    let lost = timeout(2 * store.short(), losses.join_next()).await;
    assert!(lost.is_err(), "{lost:?}");
    assert!(leases.iter().all(|lease| !lease.is_lost() && !lease.is_held()));
}

async fn the_end_of_a_lease_is_signalled_before_it(store: &Store) {
    let locker = store.locker().await;
    let guard = hold(&locker).await;
    let (lease, soon) = (guard.lease(), AMPLE.saturating_sub(store.short()));
    let left = timeout(LIMIT, lease.ending_within(soon)).await.unwrap();
    assert!(left <= soon && lease.remaining() <= left, "{left:?}");
    // Its end is nearer than that already.
    let nearer = timeout(LIMIT, lease.ending_within(AMPLE)).await.unwrap();
    assert!(nearer <= left, "{nearer:?} {left:?}");
    lease.extend(2 * AMPLE).await.unwrap();
    assert!(!give_up_after(1, lease.ending_within(AMPLE)).await, "it waits again");
    let again = timeout(LIMIT, lease.ending_within(AMPLE + soon)).await.unwrap();
    assert!(again <= AMPLE + soon, "{again:?}");
    let after = lease.clone();
    guard.release().await.unwrap();
    assert!(!give_up_after(1, after.ending_within(AMPLE)).await, "it was released");
}

async fn the_signal_before_the_end_knows_every_end(store: &Store) {
    let locker = store.locker().await;
    let request = locker.lock(KEY).expire(2 * AMPLE).renew().max_hold(AMPLE);
    let (guard, soon) = (request.acquire().await.unwrap(), AMPLE.saturating_sub(store.short()));
    let left = timeout(LIMIT, guard.lease().ending_within(soon)).await.unwrap();
    assert!(left <= soon, "{left:?}");
    guard.release().await.unwrap();
    let guard = hold_renewed(store, &locker).await;
    let early = guard.lease().ending_within(AMPLE);
    assert!(!give_up_after(1, early).await, "its renewal is not even due");
    // So that its deadline is far.
    guard.lease().extend(20 * store.lease()).await.unwrap();
    Harm::Deleted.befall(store);
    let left = timeout(LIMIT, guard.lease().ending_within(store.lease() / 2)).await.unwrap();
    assert!(left.is_zero() && guard.lease().is_lost(), "{left:?}");
}

async fn every_waiter_hears_of_the_loss(store: &Store) {
    let locker = store.locker().await;
    let guard = locker.lock(KEY).acquire().await.unwrap();
    let mut waiting = JoinSet::new();
    for _ in 0..20 {
        let lease = guard.lease().clone();
        waiting.spawn(async move { lease.lost().await });
    }
    yield_now().await;
    store.delete(NAME);
    guard.lease().extend(AMPLE).await.unwrap_err();
    // None of them waits until its lease would have ended.
    let losses = timeout(LIMIT, waiting.join_all()).await.unwrap();
    assert!(losses.len() == 20 && losses.iter().all(LockError::is_lost));
    assert!(losses.iter().all(|error| error.to_string() == losses[0].to_string()));
}

async fn a_loss_stays_while_later_holders_come_and_go(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let lost = hold_shortly(store, &locker).await;
    store.pass(NAME).await;
    for next in [&other, &locker] {
        let next = hold(next).await;
        assert!(
            next.lease().is_held()
                && lost.lease().is_lost()
                && !lost.lease().is_held()
                && lost.lease().remaining().is_zero()
        );
        assert!(lost.lease().extend(store.lease()).await.unwrap_err().is_lost());
        assert!(at_once(lost.lease().lost()).is_some_and(|error| error.is_lost()));
        assert!(at_once(lost.lease().lost()).is_some_and(|error| error.is_lost()));
        next.release().await.unwrap();
        assert!(lost.lease().is_lost() && !lost.lease().is_held());
    }
    assert!(lost.release().await.unwrap_err().is_lost());
}

async fn a_refused_holder_stays_lost(store: &Store) {
    let locker = store.locker().await;
    let guard = in_time(|| locker.lock(KEY).expire(store.short()).renew()).await;
    store.put_foreign(NAME, 20 * store.lease());
    let why = guard.lease().lost().await.to_string();
    store.delete(NAME);
    // Still the first reason, also past the deadline.
    store.elapse(store.short()).await;
    assert!(guard.lease().is_lost() && guard.lease().remaining().is_zero());
    assert_eq!(guard.lease().lost().await.to_string(), why);
}

async fn a_body_is_not_polled_after_a_refused_renewal(store: &Store) {
    let (deleted, was_lost) = (Cell::new(false), Cell::new(false));
    let call = guarded(&store.locker().await, store.lease(), async |lease: Lease| {
        loop {
            // The loss may be found at the start of a poll; then that is the last.
            assert!(!was_lost.replace(lease.is_lost()), "polled after the loss");
            if !deleted.replace(true) {
                // So that its deadline is far.
                lease.extend(AMPLE).await.unwrap();
                store.delete(NAME);
            }
            store.elapse(store.lease() / 100).await;
        }
    })
    .await;
    let error = call.unwrap_err();
    assert!(error.is_lost() && !error.is_body_finished(), "{error}");
    assert!(error.to_string().contains("it has no holder"), "{error}");
}

/// The lock is taken by another while the body's lease ends, and not a moment before.
async fn a_stopped_body_is_dropped_before_the_next_holder(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let dropped = Cell::new(false);
    let body = async {
        let _end = OnDrop(|| dropped.set(true));
        pending::<()>().await;
    };
    let next = async {
        loop {
            if let Some(next) = unless_busy(other.lock(KEY).try_acquire().await) {
                assert!(dropped.get(), "two at the same time");
                return next;
            }
            store.elapse(store.short() / 50).await;
        }
    };
    let mut run = pin!(locker.lock(KEY).expire(store.lease() / 4).run(body));
    while !store.has(NAME) {
        assert!(!give_up_after(1, run.as_mut()).await);
        yield_now().await;
    }
    // The other's answer is taken in after the body has had a turn, in which it is stopped if its lease is over.
    let (outcome, next) = tokio::join!(biased; run, next);
    assert!(outcome.unwrap_err().is_lost());
    next.release().await.unwrap();
}

async fn a_body_may_finish_after_a_refused_renewal(store: &Store) {
    let request = store.locker().await.lock(KEY).expire(store.lease()).renew();
    let body = async {
        store.put_foreign(NAME, 20 * store.lease());
        store.elapse(store.lease() / 2).await;
        42
    };
    assert_eq!(request.on_lost(OnLost::Finish).run(body).await.unwrap(), 42);
    // The other holder's lock was left alone.
    assert!(store.life(NAME).unwrap() > 15 * store.lease());
    store.delete(NAME);
}

async fn a_body_that_may_finish_knows_of_its_loss(store: &Store) {
    let locker = store.locker().await;
    let polls = Cell::new(0);
    let value = finishing(&locker, store.lease() / 2, async |lease: Lease| {
        assert!(lease.is_held() && !lease.is_lost());
        assert!(lease.lost().await.is_lost());
        poll_fn(|cx| {
            polls.set(polls.get() + 1);
            cx.waker().wake_by_ref();
            if polls.get() < 5 { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        assert!(lease.is_lost() && !lease.is_held());
        lease
    });
    assert!(value.await.unwrap().is_lost());
    assert_eq!(polls.get(), 5);
}

async fn a_lease_is_over_after_its_body(store: &Store) {
    let locker = store.locker().await;
    let lease = guarded(&locker, store.lease(), async |lease: Lease| lease).await.unwrap();
    assert!(!lease.is_held() && !lease.is_lost() && at_once(lease.lost()).is_none());
    hold(&locker).await.release().await.unwrap();
}

/// An outsider restores what was there: the same text, so that a renewal would find its own.
async fn a_lock_that_comes_back_stays_lost(store: &Redis) {
    let guard = hold_renewed(store, &store.locker().await).await;
    let owner = store.owner(NAME).unwrap();
    store.delete(NAME);
    assert!(guard.lease().lost().await.is_lost());
    store.admin_of(NAME).set(NAME, &owner);
    assert_quiet(store).await;
    assert!(guard.lease().is_lost() && guard.lease().remaining().is_zero());
    assert!(guard.lease().extend(store.lease()).await.unwrap_err().is_lost());
    assert_eq!(store.admin_of(NAME).pttl(NAME), -1);
    store.delete(NAME);
}

async fn blocking_over_a_refused_renewal_is_reported_as_completed(store: &Redis) {
    let call = guarded(&store.locker().await, store.lease(), async |lease: Lease| {
        lease.extend(AMPLE).await.unwrap();
        store.delete(NAME);
        while !lease.is_lost() {
            store.block(store.lease() / 100);
        }
    })
    .await;
    let error = call.unwrap_err();
    assert!(error.is_lost() && error.is_body_finished(), "{error}");
    assert!(error.to_string().contains("it has no holder"), "{error}");
}

/// Goal: a loss that shows long before the deadline, though nothing is renewed.
async fn a_loss_is_found_when_the_connection_returns(store: &Redis) {
    let locker = store.locker().await;
    let guard = hold(&locker).await;
    break_connections_and_lose_all_data(store);
    // Whatever is asked next finds the connection broken.
    assert!(locker.inspect("other").await.unwrap().is_none());
    let error = timeout(LIMIT, guard.lease().lost()).await.unwrap();
    assert!(error.is_lost() && error.to_string().contains("it has no holder"), "{error}");
}

async fn a_loss_is_found_after_the_locker_was_dropped(store: &Redis) {
    let locker = store.locker().await;
    let renewed = locker.lock("other").expire(store.lease()).renew().acquire().await.unwrap();
    let guard = hold(&locker).await;
    drop(locker);
    // The renewal has a connection of its own by then, which it finds broken at its next turn.
    store.elapse(store.lease() / 2).await;
    break_connections_and_lose_all_data(store);
    assert!(renewed.lease().lost().await.is_lost());
    let error = timeout(LIMIT, guard.lease().lost()).await.unwrap();
    assert!(error.is_lost() && error.to_string().contains("it has no holder"), "{error}");
}

/// As a server does that restarts.
fn break_connections_and_lose_all_data(store: &Redis) {
    store.lose_all_data();
    store.admin_of(NAME).command::<()>(&["CLIENT", "KILL", "TYPE", "normal"]);
}

/// Runs the body under a renewed lock, with its lease.
#[distributed_lock(
    key = "order:7", locker = locker.clone(), expire = expire, renew, guard = lease
)]
async fn guarded<T>(
    locker: &Locker,
    expire: Duration,
    body: impl AsyncFnOnce(Lease) -> T,
) -> Result<T, LockError> {
    Ok(body(lease).await)
}

/// Runs the body under a lock that is not renewed, also past its end.
#[distributed_lock(
    key = "order:7", locker = locker.clone(), expire = expire, on_lost = finish, guard = lease
)]
async fn finishing<T>(
    locker: &Locker,
    expire: Duration,
    body: impl AsyncFnOnce(Lease) -> T,
) -> Result<T, LockError> {
    Ok(body(lease).await)
}
