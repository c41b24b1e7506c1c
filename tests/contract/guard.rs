//! What a guard says of its lock, and how it makes it last longer.

use lockable_runtime::LockErrorKind;
use lockable_tests::unless_busy;
use std::pin::pin;
use std::time::Duration;

use lockable_runtime::LockGuard;
use lockable_tests::sections::renewed;
use tokio::task::yield_now;
use tokio::time::Instant;

use crate::cancellation::give_up_after;
use crate::fixture::{
    AMPLE, Harm, KEY, NAME, Redis, Store, assert_quiet, at_once, drained, hold, hold_renewed,
    hold_shortly,
};

every_backend! { one_thread: [
    an_extended_lock_ends_with_its_second_lease,
    an_extension_lasts_here_and_in_the_store,
    a_shorter_extension_changes_nothing,
    a_lock_is_not_extended_after_its_deadline,
    extending_a_lock_finds_it_deleted_or_taken,
    an_invalid_extension_is_refused_before_anything_is_sent,
    a_released_lock_is_not_extended,
    what_remains_falls_with_time_and_ends_at_zero,
    a_release_says_what_it_found,
    a_release_after_a_known_loss_asks_nothing_more,
] and_sentinel: [
    a_renewed_lock_is_extended_and_renewed_on,
] }

every_claim! { redis_alone: Redis, one_thread, [
    an_extension_answered_after_the_deadline_is_lost,
] }

/// A wait for the loss that began before the extension does not end with the first lease.
async fn an_extended_lock_ends_with_its_second_lease(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let (second, guard) = (4 * store.short(), hold_shortly(store, &locker).await);
    let mut lost = pin!(guard.lease().lost());
    let (start, waits) = (Instant::now(), at_once(lost.as_mut()).is_none());
    if !waits || guard.lease().extend(second).await.is_err() {
        // The first lease was over before.
        return assert!(!store.is_exact() && guard.lease().is_lost());
    }
    store.elapse(store.short() * 5 / 4).await;
    let next = unless_busy(other.lock(KEY).try_acquire().await);
    assert!(next.is_none() || !guard.lease().is_held());
    drop(next);
    let error = lost.await;
    assert!(error.is_lost() && error.to_string().contains("its lease ended"), "{error}");
    assert!(start.elapsed() >= second * 19 / 20);
    store.pass(NAME).await;
    hold(&other).await.release().await.unwrap();
}

async fn an_extension_lasts_here_and_in_the_store(store: &Store) {
    let guard = hold(&store.locker().await).await;
    let (token, longer) = (guard.lease().fencing_token(), 3 * AMPLE);
    guard.lease().extend(longer).await.unwrap();
    let (rest, life) = (guard.lease().remaining(), store.life(NAME).unwrap());
    assert!(rest > longer / 2 && rest < longer, "{rest:?}");
    assert!(life > longer / 2 && life <= longer, "{life:?}");
    assert_eq!(guard.lease().fencing_token(), token);
    // By any handle.
    guard.lease().extend(2 * longer).await.unwrap();
    assert!(guard.lease().remaining() > longer && store.life(NAME).unwrap() > longer);
    guard.release().await.unwrap();
    assert!(!store.has(NAME));
}

async fn a_shorter_extension_changes_nothing(store: &Store) {
    let guard = hold(&store.locker().await).await;
    for shorter in [Duration::from_millis(10), Duration::from_secs(2)] {
        guard.lease().extend(shorter).await.unwrap();
        assert!(guard.lease().is_held() && guard.lease().remaining() > Duration::from_secs(5));
        assert!(store.life(NAME).unwrap() > Duration::from_secs(5));
    }
}

/// The lock may live in the store a little longer, which would then extend it.
async fn a_lock_is_not_extended_after_its_deadline(store: &Store) {
    let guard = hold_shortly(store, &store.locker().await).await;
    guard.lease().lost().await;
    let before = store.requests();
    assert_not_extended(&guard, "its lease ended").await;
    store.pass(NAME).await;
    assert_not_extended(&guard, "its lease ended").await;
    assert_eq!((store.requests(), store.locks()), (before, vec![]));
}

async fn extending_a_lock_finds_it_deleted_or_taken(store: &Store) {
    let locker = store.locker().await;
    let harms = [(Harm::Deleted, "it has no holder"), (Harm::Taken, "another holder has it")];
    for (harm, why) in harms {
        let guard = hold(&locker).await;
        harm.befall(store);
        let (owner, life) = (store.owner(NAME), store.life(NAME));
        assert_not_extended(&guard, why).await;
        assert!(at_once(guard.lease().lost()).is_some_and(|error| error.is_lost()));
        assert!(store.owner(NAME) == owner && store.life(NAME) <= life);
        store.delete(NAME);
        // A loss is final.
        assert_not_extended(&guard, why).await;
    }
}

async fn an_invalid_extension_is_refused_before_anything_is_sent(store: &Store) {
    let guard = hold(&store.locker().await).await;
    let (before, life) = (store.requests(), store.life(NAME));
    for duration in [Duration::ZERO, Duration::from_micros(9_999), Duration::MAX] {
        let error = guard.lease().extend(duration).await.unwrap_err();
        assert!(
            error.kind() == LockErrorKind::InvalidOption && error.to_string().contains("`extend`"),
            "{error}"
        );
        assert_eq!(error.key(), Some(NAME));
        assert!(guard.lease().is_held());
    }
    assert!(store.requests() == before && store.life(NAME) <= life);
}

async fn a_released_lock_is_not_extended(store: &Store) {
    let locker = store.locker().await;
    let guard = hold(&locker).await;
    let lease = guard.lease().clone();
    guard.release().await.unwrap();
    let before = store.requests();
    let error = lease.extend(Duration::from_secs(20)).await.unwrap_err();
    assert!(error.to_string().contains("released"), "{error}");
    assert_eq!((store.requests(), store.locks()), (before, vec![]));
    // Also when the next holder is in the same process.
    let next = hold(&locker).await;
    assert!(lease.extend(2 * AMPLE).await.is_err());
    assert!(!lease.is_lost() && store.life(NAME).unwrap() <= AMPLE);
    next.release().await.unwrap();
}

async fn a_renewed_lock_is_extended_and_renewed_on(store: &Store) {
    let guard = hold_renewed(store, &store.locker().await).await;
    guard.lease().extend(store.lease() * 5 / 4).await.unwrap();
    renewed(&guard).await;
    assert!(guard.lease().is_held() && store.has(NAME));
    guard.release().await.unwrap();
    assert_quiet(store).await;
}

async fn what_remains_falls_with_time_and_ends_at_zero(store: &Store) {
    let locker = store.locker().await;
    let guard = hold(&locker).await;
    let mut rest = guard.lease().remaining();
    assert!(rest < AMPLE);
    for _ in 0..3 {
        store.elapse(store.short() / 10).await;
        let next = guard.lease().remaining();
        assert!(
            next + store.short() / 10 <= rest + Duration::from_millis(1),
            "{next:?} after {rest:?}"
        );
        assert!(guard.lease().is_held() && guard.lease().remaining() <= next);
        rest = next;
    }
    guard.release().await.unwrap();
    let guard = hold_shortly(store, &locker).await;
    store.block(store.short());
    assert!(guard.lease().remaining().is_zero() && guard.lease().remaining().is_zero());
    assert!(!guard.lease().is_held() && !guard.lease().is_held() && guard.lease().is_lost());
}

async fn a_release_says_what_it_found(store: &Store) {
    let locker = store.locker().await;
    let harms = [
        (Harm::Deleted, "had expired, or was deleted or evicted"),
        (Harm::Flushed, "had expired, or was deleted or evicted"),
        (Harm::Taken, "another holder has it"),
    ];
    for (harm, found) in harms {
        let guard = hold(&locker).await;
        harm.befall(store);
        let before = store.locks();
        let error = guard.release().await.unwrap_err();
        assert!(error.is_lost() && error.to_string().contains(found), "{error}");
        assert_eq!(error.is_taken(), matches!(harm, Harm::Taken), "{error}");
        assert_eq!((error.key(), store.locks()), (Some(NAME), before));
        store.delete(NAME);
    }
    let expired = hold_shortly(store, &locker).await;
    store.pass(NAME).await;
    let error = expired.release().await.unwrap_err();
    assert!(error.is_lost() && !error.is_body_finished() && !error.is_taken(), "{error}");
    hold(&locker).await.release().await.unwrap();
}

async fn a_release_after_a_known_loss_asks_nothing_more(store: &Store) {
    let locker = store.locker().await;
    let ends: [fn(LockGuard); 2] =
        [drop, |guard| assert!(at_once(guard.release()).unwrap().unwrap_err().is_lost())];
    for end in ends {
        let guard = hold_renewed(store, &locker).await;
        store.put_foreign(NAME, 20 * store.lease());
        guard.lease().lost().await;
        let before = store.requests();
        end(guard);
        drained().await;
        assert_eq!(store.requests(), before);
        assert!(store.has(NAME));
        store.delete(NAME);
    }
}

/// Goal: an answer that says yes, and whose holder had to give up before it came.
/// Method: the thread is blocked from when the server has the request until after the deadline.
async fn an_extension_answered_after_the_deadline_is_lost(store: &Redis) {
    let locker = store.locker().await;
    let guard = locker.lock(KEY).expire(store.lease()).acquire().await.unwrap();
    let mut call = Box::pin(guard.lease().extend(20 * store.lease()));
    while store.life(NAME).unwrap() <= store.lease() {
        assert!(!give_up_after(1, call.as_mut()).await, "answered in time");
        yield_now().await;
    }
    store.block(store.lease());
    let error = call.await.unwrap_err();
    assert!(error.is_lost() && error.to_string().contains("its lease ended"), "{error}");
    assert!(
        guard.lease().is_lost() && !guard.lease().is_held() && guard.lease().remaining().is_zero()
    );
    // It is this holder's to release all the same.
    assert!(store.has(NAME));
}

async fn assert_not_extended(guard: &LockGuard, why: &str) {
    let error = guard.lease().extend(30 * AMPLE).await.unwrap_err();
    assert!(error.is_lost() && error.to_string().contains(why), "{error}");
    assert_eq!(error.is_taken(), why == "another holder has it", "{error}");
    assert_eq!(error.key(), Some(NAME));
    assert!(
        guard.lease().is_lost() && !guard.lease().is_held() && guard.lease().remaining().is_zero()
    );
}
