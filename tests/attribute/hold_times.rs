//! `max_hold` and `min_hold`, and combinations that are refused when the function is called.

use lockable_runtime::LockErrorKind;
use std::time::Duration;

use lockable_runtime::{LockError, Locker, distributed_lock};
use tokio::time::Instant;
use tracing::Level;

use crate::by_return_type::by_return_type;
use crate::events;
use crate::support::{
    BoxFuture, Journal, SECOND, ShopError, elapse, is_free, locker, pause, skip_a_lease,
    start_and_drop,
};

/// Works until it is stopped.
async fn work() {
    loop {
        elapse(SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewed_body_is_stopped_at_its_maximum_hold() {
    const LONGEST: Duration = Duration::from_secs(25);

    let (locks, start) = (locker().await, Instant::now());
    for error in [
        by_return_type!(async &locks, [renew, max_hold = 25] work().await).error(),
        by_return_type!(async &locks, [renew, max_hold = LONGEST, on_lost = finish] work().await)
            .error(),
    ] {
        assert!(error.is_max_hold_reached() && !error.is_lost(), "{error}");
    }
    assert_eq!(start.elapsed(), LONGEST * 8);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_body_is_dropped_under_its_lock() {
    #[distributed_lock(key = "k", locker = locks, renew, max_hold = *most)]
    async fn call(locks: &Locker, journal: &Journal, most: &Duration) {
        let _transaction = journal.drops("transaction").looking_at(locks, "k");
        work().await;
    }
    let (locks, journal) = (locker().await, Journal::default());
    call(&locks, &journal, &(SECOND * 25)).await;
    assert_eq!(journal.entries(), ["transaction when held"]);
}

#[tokio::test(start_paused = true)]
async fn before_its_maximum_hold_a_body_is_not_stopped() {
    let locks = locker().await;
    by_return_type!(async &locks, [renew, max_hold = "25s"] elapse(SECOND * 24).await)
        .assert_finished(0);
}

/// Nothing can stop it, and nothing is lost: its lock is held until it ends.
#[tokio::test(start_paused = true)]
async fn a_sync_body_past_max_hold_gives_its_value() {
    let locks = locker().await;
    by_return_type!(sync &locks, [expire = 60, renew, max_hold = "5s", guard = lock] {
        skip_a_lease();
        assert!(!lock.is_held() && !lock.is_lost());
    })
    .assert_finished(0);
}

#[tokio::test(start_paused = true)]
async fn a_second_call_within_the_shortest_hold_is_busy() {
    #[distributed_lock(key = "k:unit", locker = locks, min_hold = 3)]
    async fn unit(locks: &Locker, journal: &Journal) {
        pause().await;
        journal.write("ran");
    }
    #[distributed_lock(key = "k:option", locker = locks, min_hold = "3s")]
    async fn option(locks: &Locker) -> Option<u8> {
        Some(7)
    }
    #[distributed_lock(key = "k:result", locker = locks, expire = "3s", min_hold = SECOND * 3)]
    async fn result(locks: &Locker) -> Result<u8, LockError> {
        Ok(7)
    }
    #[distributed_lock(key = "k:skips", locker = locks, min_hold = 3, renew, on_busy = skip)]
    fn skips(locks: &Locker) -> BoxFuture<'_, Result<Option<u8>, ShopError>> {
        Box::pin(async { Ok(Some(7)) })
    }
    #[distributed_lock(key = "k:sync", locker = locks, min_hold = *least, on_busy = 1,
        on_error = |_| 2)]
    fn sync(locks: &Locker, least: &Duration) -> u8 {
        7
    }
    let (locks, journal, start) = (locker().await, Journal::default(), Instant::now());
    let least = SECOND * 3;
    for turn in 1..=2 {
        unit(&locks, &journal).await;
        assert_eq!(option(&locks).await, Some(7));
        assert_eq!(result(&locks).await.unwrap(), 7);
        assert_eq!(skips(&locks).await.unwrap(), Some(7));
        assert_eq!(sync(&locks, &least), 7);
        // They return at once, and leave the lock taken.
        assert_eq!(start.elapsed(), (turn - 1) * SECOND * 3);
        elapse(Duration::from_millis(2_999)).await;
        events::listen();
        unit(&locks, &journal).await;
        events::assert_only(Level::INFO, &["disLock:k:unit"]);
        assert_eq!(option(&locks).await, None);
        assert!(result(&locks).await.unwrap_err().is_busy());
        assert_eq!(skips(&locks).await.unwrap(), None);
        assert_eq!(sync(&locks, &least), 1);
        elapse(Duration::from_millis(1)).await;
    }
    assert_eq!(journal.entries(), ["ran"; 2]);
}

#[tokio::test(start_paused = true)]
async fn the_shortest_hold_counts_whatever_the_outcome() {
    #[distributed_lock(key = "{way}", locker = locks, min_hold = 3)]
    async fn call(locks: Locker, way: u8) -> Result<(), ShopError> {
        pause().await;
        match way {
            1 => return Err(ShopError::SoldOut),
            2 => panic!("on purpose"),
            3 => std::future::pending().await,
            _ => elapse(SECOND * 4).await,
        }
        Ok(())
    }
    let locks = locker().await;
    assert!(matches!(call(locks.clone(), 1).await, Err(ShopError::SoldOut)));
    assert!(tokio::spawn(call(locks.clone(), 2)).await.unwrap_err().is_panic());
    start_and_drop(call(locks.clone(), 3)).await;
    elapse(SECOND * 2).await;
    for key in ["1", "2", "3"] {
        assert!(!is_free(&locks, key), "{key}");
    }
    elapse(SECOND).await;
    for key in ["1", "2", "3"] {
        assert!(is_free(&locks, key), "{key}");
    }
    // A body that took longer leaves nothing behind.
    call(locks.clone(), 4).await.unwrap();
    assert!(is_free(&locks, "4"));
}

#[tokio::test]
async fn impossible_limits_refuse_the_call() {
    #[distributed_lock(key = "k", locker = locks, expire = "3s", min_hold = least)]
    async fn least_too_long(locks: &Locker, least: Duration) -> Result<(), LockError> {
        unreachable!("runs without a lock")
    }
    #[expect(deprecated, reason = "the compiler warns of it, and a locker may have a longer lease")]
    #[distributed_lock(key = "k", locker = locks, min_hold = "11s")]
    async fn longer_than_the_lockers(locks: &Locker) -> Result<(), LockError> {
        unreachable!("runs without a lock")
    }
    #[distributed_lock(key = "k", locker = locks, renew, max_hold = most)]
    fn no_time_at_all(locks: &Locker, most: Duration) -> BoxFuture<'_, Result<(), LockError>> {
        Box::pin(async { unreachable!("runs without a lock") })
    }
    #[distributed_lock(key = "k", locker = locks, renew, max_hold = most)]
    fn no_time_for_sync(locks: &Locker, most: Duration) -> Result<(), LockError> {
        unreachable!("runs without a lock")
    }
    #[distributed_lock(key = "k", locker = locks, expire = least / 2, min_hold = least)]
    fn least_too_long_for_sync(locks: &Locker, least: Duration) -> Result<(), LockError> {
        unreachable!("runs without a lock")
    }
    let locks = locker().await;
    let refusals = [
        ("min_hold", least_too_long(&locks, SECOND * 4).await),
        ("min_hold", longer_than_the_lockers(&locks).await),
        ("min_hold", least_too_long_for_sync(&locks, SECOND)),
        ("max_hold", no_time_at_all(&locks, Duration::ZERO).await),
        ("max_hold", no_time_for_sync(&locks, Duration::ZERO)),
    ];
    for (option, refusal) in refusals {
        let error = refusal.unwrap_err();
        assert!(error.kind() == LockErrorKind::InvalidOption, "{error}");
        assert_eq!(error.key(), Some("disLock:k"));
        let text = error.to_string();
        assert!(text.contains("disLock:k") && text.contains(&format!("`{option}`")), "{text}");
    }
    assert!(is_free(&locks, "k"));
}

#[tokio::test]
async fn a_refused_limit_without_a_return_value_is_logged() {
    #[distributed_lock(key = "k", locker = locks, renew, max_hold = most)]
    async fn unit(locks: &Locker, most: Duration) {
        unreachable!("runs without a lock")
    }
    #[distributed_lock(key = "k", locker = locks, min_hold = least)]
    fn option(locks: &Locker, least: Duration) -> Option<u8> {
        unreachable!("runs without a lock")
    }
    #[distributed_lock(key = "k", locker = locks, min_hold = *least, on_busy = 1, on_error = |_| 2)]
    async fn answered(locks: &Locker, least: &Duration) -> u8 {
        unreachable!("runs without a lock")
    }
    let locks = locker().await;
    events::listen();
    unit(&locks, Duration::ZERO).await;
    assert_eq!(events::count_errors(&["disLock:k", "max_hold"]), 1);
    assert_eq!(option(&locks, SECOND * 11), None);
    assert_eq!(events::count_errors(&["disLock:k", "min_hold"]), 1);
    assert_eq!(answered(&locks, &(SECOND * 11)).await, 2);
    assert!(events::take().is_empty());
}
