//! What is refused never reaches the store, and what reaches it does not stay.
//!
//! Every test of this suite ends by looking for leftovers; these make some on purpose.

use lockable_runtime::LockErrorKind;
use std::future::poll_fn;
use std::time::Duration;

use lockable_runtime::{LockError, LockRequest};

use crate::fixture::{FENCE, KEY, NAME, Store};

every_full_backend! { one_thread: [
    an_invalid_key_is_refused_before_anything_is_sent,
    an_invalid_lease_is_refused_before_anything_is_sent,
    one_try_with_terms_of_waiting_is_refused,
    the_longest_key_and_the_shortest_lease_are_good,
    the_greatest_value_of_each_option_is_good,
    a_lockers_lease_is_checked_when_it_is_built,
    a_request_that_is_never_acquired_does_nothing,
    a_released_lock_leaves_one_fence_for_ten_minutes,
    the_fence_of_a_long_lease_outlives_it_tenfold,
    locks_of_one_slot_share_a_fence_counter,
] }

async fn an_invalid_key_is_refused_before_anything_is_sent(store: &Store) {
    let locker = store.locker().await;
    let too_long = "k".repeat(1025 - "disLock:".len());
    let before = store.requests();
    for key in ["", &too_long, "{", "}", "{}", "a{}b", "a}b", "a{b", "}a{", "{}{a}"] {
        let error = refusal(|| locker.lock(key)).await;
        assert!(error.kind() == LockErrorKind::InvalidKey, "{key}: {error}");
        assert!(locker.inspect(key).await.unwrap_err().kind() == LockErrorKind::InvalidKey);
        let whole = format!("disLock:{key}");
        let shown = error.key().unwrap();
        // Of a key that is too long, the beginning.
        assert!(
            shown == whole || shown.len() < 64 && whole.starts_with(shown.trim_end_matches('…'))
        );
    }
    assert_eq!((store.requests(), store.keyspace()), (before, vec![]));
}

async fn an_invalid_lease_is_refused_before_anything_is_sent(store: &Store) {
    let locker = store.locker().await;
    let before = store.requests();
    for expire in [Duration::ZERO, Duration::from_micros(9_999), Duration::MAX] {
        let error = refusal(|| locker.lock(KEY).expire(expire)).await;
        assert!(error.kind() == LockErrorKind::InvalidOption, "{expire:?}: {error}");
        assert_eq!(error.key(), Some(NAME));
    }
    assert_eq!((store.requests(), store.keyspace()), (before, vec![]));
}

async fn one_try_with_terms_of_waiting_is_refused(store: &Store) {
    let locker = store.locker().await;
    let before = store.requests();
    for limit in [Duration::ZERO, Duration::from_secs(1)] {
        let error = locker.lock(KEY).wait(limit).try_acquire().await.unwrap_err();
        assert!(
            error.kind() == LockErrorKind::InvalidOption && error.to_string().contains("`wait`"),
            "{error}"
        );
        assert_eq!(error.key(), Some(NAME));
    }
    let error = locker.lock(KEY).fair().try_run(never()).await.unwrap_err();
    assert!(
        error.kind() == LockErrorKind::InvalidOption && error.to_string().contains("`fair`"),
        "{error}"
    );
    assert_eq!((store.requests(), store.keyspace()), (before, vec![]));
}

async fn the_longest_key_and_the_shortest_lease_are_good(store: &Store) {
    let locker = store.locker().await;
    let key = "k".repeat(1024 - "disLock:".len());
    let guard = locker.lock(&key).acquire().await.unwrap();
    assert_eq!(guard.lease().key().as_str().len(), 1024);
    drop(guard);
    // The answer may come after such a short lease; nothing else may go wrong.
    match locker.lock(KEY).expire(Duration::from_millis(10)).acquire().await {
        Ok(guard) => assert!(guard.lease().remaining() < Duration::from_millis(8)),
        Err(error) => assert!(error.is_unavailable(), "{error}"),
    }
}

async fn the_greatest_value_of_each_option_is_good(store: &Store) {
    let locker = store.locker().await;
    let longest = Duration::from_millis(i64::MAX.unsigned_abs() / 2);
    let request = |key| locker.lock(key).wait(Duration::MAX);
    for request in [
        request("expire").expire(longest),
        request("max_hold").renew().max_hold(Duration::MAX),
        request("min_hold").expire(longest).min_hold(longest),
        request("permits").permits(64),
    ] {
        request.acquire().await.unwrap().release().await.unwrap();
    }
    request("once").once().acquire().await.unwrap().keep(longest).await.unwrap();
    request("all").all_permits(64).acquire().await.unwrap().release().await.unwrap();
    assert!(locker.lock("once").once().acquire().await.unwrap_err().is_done());
    assert!(locker.lock("min_hold").try_acquire().await.unwrap_err().is_busy());
    store.eventually(|| store.locks().len() == 2).await;
    store.lose_all_data();
}

async fn a_lockers_lease_is_checked_when_it_is_built(store: &Store) {
    // Redis adds the lease to its calendar, in 63 bits.
    let endless = Duration::from_millis(i64::MAX.unsigned_abs());
    let before = store.requests();
    for expire in [Duration::from_millis(9), endless] {
        let builder = store.builder().expire(expire);
        assert!(
            builder
                .clone()
                .connect_lazy()
                .is_err_and(|error| error.kind() == LockErrorKind::InvalidOption)
        );
        assert!(
            builder
                .connect()
                .await
                .is_err_and(|error| error.kind() == LockErrorKind::InvalidOption)
        );
    }
    assert_eq!(store.requests(), before);
}

async fn a_request_that_is_never_acquired_does_nothing(store: &Store) {
    let locker = store.locker().await;
    let before = store.requests();
    drop(locker.lock(KEY));
    drop(locker.lock(KEY).acquire());
    drop(locker.lock(KEY).run(async {}));
    assert_eq!((store.requests(), store.keyspace()), (before, vec![]));
}

async fn a_released_lock_leaves_one_fence_for_ten_minutes(store: &Store) {
    let locker = store.locker().await;
    let minutes = |count: u64| Duration::from_secs(60 * count);
    for _ in 0..20 {
        let request = locker.lock(KEY).expire(minutes(1));
        request.acquire().await.unwrap().release().await.unwrap();
    }
    let [(name, Some(life))] = &store.keyspace()[..] else {
        panic!("{:?}", store.keyspace());
    };
    assert_eq!(name, FENCE);
    assert!(minutes(5) < *life && *life <= minutes(10), "{life:?}");
}

async fn the_fence_of_a_long_lease_outlives_it_tenfold(store: &Store) {
    let hour = Duration::from_secs(3600);
    let guard = store.locker().await.lock(KEY).expire(hour).acquire().await.unwrap();
    let life = store.life(FENCE).unwrap();
    assert!(9 * hour < life && life <= 10 * hour, "{life:?}");
    guard.release().await.unwrap();
    // Longer than the last look of every test allows.
    store.lose_all_data();
}

async fn locks_of_one_slot_share_a_fence_counter(store: &Store) {
    let locker = store.locker().await;
    let mut tokens = Vec::new();
    for key in ["{user}:7", "{user}:8", "{user}:7"] {
        let guard = locker.lock(key).acquire().await.unwrap();
        tokens.push(guard.lease().fencing_token());
        guard.release().await.unwrap();
    }
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    let names: Vec<_> = store.keyspace().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["lockable:fence:{0bi}"]);
}

/// The error of all ways to ask.
async fn refusal(request: impl Fn() -> LockRequest) -> LockError {
    let error = request().try_acquire().await.unwrap_err();
    assert_eq!(request().acquire().await.unwrap_err().kind(), error.kind());
    assert_eq!(request().run(never()).await.unwrap_err().kind(), error.kind());
    error
}

fn never() -> impl Future<Output = ()> {
    poll_fn(|_| unreachable!("the body runs without its lock"))
}
