//! What a guard says of its lock, and how it makes it last longer.

use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

use crate::cancellation::give_up_after;
use crate::fixture::{
    Fixture, Harm, KEY, LIMIT, NAME, Redis, assert_quiet, at_once, drained, hold, hold_renewed,
    hold_shortly,
};

every_backend! { one_thread: [
    an_extended_lock_ends_with_its_second_lease,
    an_extension_lasts_here_and_in_the_store,
    a_shorter_extension_changes_nothing,
    an_extension_prolongs_a_wait_for_the_loss,
    a_lock_is_not_extended_after_its_deadline,
    extending_a_deleted_lock_finds_it_lost,
    extending_a_taken_lock_finds_it_lost,
    an_invalid_extension_is_refused_before_anything_is_sent,
    a_released_lock_is_not_extended,
    a_renewed_lock_is_extended_and_renewed_on,
    what_remains_falls_with_time_and_ends_at_zero,
    a_release_says_what_it_found,
    a_release_after_a_known_loss_asks_nothing_more,
] }

every_claim! { redis_alone: Redis, one_thread, [
    an_extension_answered_after_the_deadline_is_lost,
] }

async fn an_extended_lock_ends_with_its_second_lease<F: Fixture>(store: &F) {
    let guard = hold_shortly(store, &store.locker().await).await;
    guard.extend(F::LEASE * 2).await.unwrap();
    let start = Instant::now();
    store.elapse(F::LEASE * 5 / 4).await;
    assert!(guard.is_held() && store.has(NAME));
    assert!(store.locker().await.lock(KEY).try_acquire().await.unwrap().is_none());
    let error = guard.lost().await;
    assert!(error.is_lost() && error.to_string().contains("its lease ended"), "{error}");
    assert!(start.elapsed() >= F::LEASE * 19 / 10);
    store.pass(NAME).await;
    hold(&store.locker().await).await.release().await.unwrap();
}

async fn an_extension_lasts_here_and_in_the_store<F: Fixture>(store: &F) {
    let guard = hold(&store.locker().await).await;
    let (token, longer) = (guard.fencing_token(), Duration::from_secs(40));
    guard.extend(longer).await.unwrap();
    let (rest, life) = (guard.remaining(), store.life(NAME).unwrap());
    assert!(rest > longer * 9 / 10 && rest < longer, "{rest:?}");
    assert!(life > longer * 9 / 10 && life <= longer, "{life:?}");
    assert_eq!((guard.lease().remaining() > longer / 2, guard.fencing_token()), (true, token));
    // By any handle.
    guard.lease().extend(2 * longer).await.unwrap();
    assert!(guard.remaining() > longer && store.life(NAME).unwrap() > longer);
    guard.release().await.unwrap();
    assert!(!store.has(NAME));
}

async fn a_shorter_extension_changes_nothing<F: Fixture>(store: &F) {
    let guard = hold(&store.locker().await).await;
    for shorter in [Duration::from_millis(10), Duration::from_secs(2)] {
        guard.extend(shorter).await.unwrap();
        assert!(guard.is_held() && guard.remaining() > Duration::from_secs(5));
        assert!(store.life(NAME).unwrap() > Duration::from_secs(5));
    }
}

async fn an_extension_prolongs_a_wait_for_the_loss<F: Fixture>(store: &F) {
    let guard = hold_shortly(store, &store.locker().await).await;
    let extend = async {
        store.elapse(F::LEASE / 10).await;
        guard.extend(20 * F::LEASE).await.unwrap();
    };
    let waiting = async { tokio::join!(guard.lost(), extend) };
    assert!(timeout(F::LEASE * 5 / 4, waiting).await.is_err());
    assert!(guard.is_held());
}

/// The lock may live in the store a little longer, which would then extend it.
async fn a_lock_is_not_extended_after_its_deadline<F: Fixture>(store: &F) {
    let guard = hold_shortly(store, &store.locker().await).await;
    guard.lost().await;
    let before = store.requests();
    assert_not_extended(&guard, "its lease ended").await;
    store.pass(NAME).await;
    assert_not_extended(&guard, "its lease ended").await;
    assert_eq!((store.requests(), store.locks()), (before, vec![]));
}

async fn extending_a_deleted_lock_finds_it_lost<F: Fixture>(store: &F) {
    let guard = hold(&store.locker().await).await;
    store.delete(NAME);
    assert!(guard.is_held());
    assert_not_extended(&guard, "no one holds it").await;
    assert!(at_once(guard.lost()).is_some_and(|error| error.is_lost()));
    assert_not_extended(&guard, "no one holds it").await;
    assert_eq!(store.locks(), [""; 0]);
}

async fn extending_a_taken_lock_finds_it_lost<F: Fixture>(store: &F) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let guard = hold(&locker).await;
    store.delete(NAME);
    let next = hold_shortly(store, &other).await;
    assert_not_extended(&guard, "another holder has it").await;
    assert!(next.is_held() && store.life(NAME).unwrap() <= F::LEASE);
    next.release().await.unwrap();
    // A loss is final.
    assert_not_extended(&guard, "another holder has it").await;
}

async fn an_invalid_extension_is_refused_before_anything_is_sent<F: Fixture>(store: &F) {
    let guard = hold(&store.locker().await).await;
    let (before, life) = (store.requests(), store.life(NAME));
    for duration in [Duration::ZERO, Duration::from_micros(9_999), Duration::MAX] {
        let error = guard.extend(duration).await.unwrap_err();
        assert!(error.is_invalid_option() && error.to_string().contains("`extend`"), "{error}");
        assert_eq!(error.key(), Some(NAME));
        assert!(guard.is_held());
    }
    assert!(store.requests() == before && store.life(NAME) <= life);
}

async fn a_released_lock_is_not_extended<F: Fixture>(store: &F) {
    let locker = store.locker().await;
    let guard = hold(&locker).await;
    let lease = guard.lease();
    guard.release().await.unwrap();
    let before = store.requests();
    let error = lease.extend(Duration::from_secs(20)).await.unwrap_err();
    assert!(error.to_string().contains("released"), "{error}");
    assert_eq!((store.requests(), store.locks()), (before, vec![]));
    // Also when the next holder is in the same process.
    let next = hold_shortly(store, &locker).await;
    assert!(lease.extend(20 * F::LEASE).await.is_err());
    assert!(!lease.is_lost() && store.life(NAME).unwrap() <= F::LEASE);
    next.release().await.unwrap();
}

async fn a_renewed_lock_is_extended_and_renewed_on<F: Fixture>(store: &F) {
    let guard = hold_renewed(store, &store.locker().await).await;
    guard.extend(F::LEASE * 5 / 4).await.unwrap();
    store.elapse(F::LEASE * 3 / 2).await;
    assert!(guard.is_held() && store.has(NAME));
    guard.release().await.unwrap();
    assert_quiet(store).await;
}

async fn what_remains_falls_with_time_and_ends_at_zero<F: Fixture>(store: &F) {
    let guard = hold_shortly(store, &store.locker().await).await;
    let mut rest = guard.remaining();
    assert!(rest < F::LEASE);
    for _ in 0..3 {
        store.elapse(F::LEASE / 10).await;
        let next = guard.remaining();
        assert!(next + F::LEASE / 10 <= rest + Duration::from_millis(1), "{next:?} after {rest:?}");
        assert!(guard.is_held() && guard.lease().remaining() <= next);
        rest = next;
    }
    store.block(F::LEASE);
    assert!(guard.remaining().is_zero() && guard.lease().remaining().is_zero());
    assert!(!guard.is_held() && !guard.lease().is_held() && guard.is_lost());
}

async fn a_release_says_what_it_found<F: Fixture>(store: &F) {
    let locker = store.locker().await;
    let harms = [
        (Harm::Deleted, "had expired or was deleted"),
        (Harm::Flushed, "had expired or was deleted"),
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
    assert!(error.is_lost() && !error.is_completed(), "{error}");
    hold(&locker).await.release().await.unwrap();
}

async fn a_release_after_a_known_loss_asks_nothing_more<F: Fixture>(store: &F) {
    let locker = store.locker().await;
    let ends: [fn(LockGuard); 2] =
        [drop, |guard| assert!(at_once(guard.release()).unwrap().unwrap_err().is_lost())];
    for end in ends {
        let guard = hold_renewed(store, &locker).await;
        store.put_foreign(NAME, 20 * F::LEASE);
        guard.lost().await;
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
    let patient = Locker::builder().url(store.url()).command_deadline(LIMIT);
    let guard = hold_shortly(store, &patient.connect().await.unwrap()).await;
    let mut call = Box::pin(guard.extend(20 * Redis::LEASE));
    while store.life(NAME).unwrap() <= Redis::LEASE {
        assert!(!give_up_after(1, call.as_mut()).await, "answered in time");
        yield_now().await;
    }
    store.block(Redis::LEASE);
    let error = call.await.unwrap_err();
    assert!(error.is_lost() && error.to_string().contains("its lease ended"), "{error}");
    assert!(guard.is_lost() && !guard.is_held() && guard.remaining().is_zero());
    // It is this holder's to release all the same.
    assert!(store.has(NAME));
}

async fn assert_not_extended(guard: &LockGuard, why: &str) {
    let error = guard.extend(Duration::from_secs(20)).await.unwrap_err();
    assert!(error.is_lost() && error.to_string().contains(why), "{error}");
    assert_eq!(error.is_taken(), why == "another holder has it", "{error}");
    assert_eq!(error.key(), Some(NAME));
    assert!(guard.is_lost() && !guard.is_held() && guard.remaining().is_zero());
}
