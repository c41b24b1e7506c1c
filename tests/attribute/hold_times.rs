//! `max_hold` and `min_hold`, and combinations that are refused when the function is called.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use lockable_runtime::{LockError, Locker, distributed_lock};
use tokio::time::Instant;
use tracing::Level;

use crate::events;
use crate::support::{Journal, ShopError, elapse, is_free, locker, pause, start_and_drop};

const SECOND: Duration = Duration::from_secs(1);

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Works until it is stopped.
async fn work<T>() -> T {
    loop {
        elapse(SECOND).await;
    }
}

/// Exactly one event at error level, which names the key and this.
fn assert_error_event(what: &str) {
    let logged = events::take();
    let errors: Vec<_> = logged.iter().filter(|event| event.level == Level::ERROR).collect();
    assert_eq!(errors.len(), 1, "{logged:#?}");
    assert!(errors[0].fields.contains("disLock:k"), "{errors:?}");
    assert!(errors[0].fields.contains(what), "{errors:?}");
}

#[tokio::test(start_paused = true)]
async fn a_renewed_body_is_stopped_at_its_maximum_hold() {
    const LONGEST: Duration = Duration::from_secs(25);

    #[distributed_lock(key = "k", locker = locks, renew, max_hold = 25)]
    async fn unit(locks: &Locker, journal: &Journal) {
        let _transaction = journal.drops("transaction").looking_at(locks, "k");
        work().await
    }
    #[distributed_lock(key = "k", locker = locks, renew, max_hold = "25s")]
    async fn option(locks: &Locker) -> Option<u8> {
        work().await
    }
    #[distributed_lock(key = "k", locker = locks, renew, max_hold = LONGEST, on_lost = finish)]
    async fn result(locks: &Locker) -> Result<u8, ShopError> {
        work().await
    }
    #[distributed_lock(key = "k", locker = locks, renew, max_hold = *most, on_busy = 1,
        on_error = |err| if err.is_max_hold_reached() && !err.is_lost() { 2 } else { 3 })]
    fn answered<'a>(locks: &'a Locker, most: &'a Duration) -> BoxFuture<'a, u8> {
        Box::pin(work())
    }
    let (locks, journal, start) = (locker().await, Journal::default(), Instant::now());
    events::listen();
    unit(&locks, &journal).await;
    assert_eq!(start.elapsed(), LONGEST);
    assert_eq!(journal.entries(), ["transaction when held"]);
    assert!(is_free(&locks, "k").await);
    assert_error_event("max_hold");
    assert_eq!(option(&locks).await, None);
    assert!(is_free(&locks, "k").await);
    assert_error_event("max_hold");
    let error = result(&locks).await.unwrap_err();
    assert!(matches!(error, ShopError::Lock(error) if error.is_max_hold_reached()));
    assert_eq!(answered(&locks, &LONGEST).await, 2);
    assert_eq!(start.elapsed(), LONGEST * 4);
    assert!(is_free(&locks, "k").await && events::take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn before_its_maximum_hold_a_body_is_not_stopped() {
    #[distributed_lock(key = "k", locker = locks, renew, max_hold = 25)]
    async fn call(locks: &Locker) -> Option<u8> {
        elapse(SECOND * 24).await;
        Some(7)
    }
    let locks = locker().await;
    events::listen();
    assert_eq!(call(&locks).await, Some(7));
    assert!(is_free(&locks, "k").await && events::take().is_empty());
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
    #[distributed_lock(key = "k:answered", locker = locks, min_hold = *least, on_busy = 1,
        on_error = |_| 2)]
    async fn answered(locks: &Locker, least: &Duration) -> u8 {
        7
    }
    let (locks, journal, start) = (locker().await, Journal::default(), Instant::now());
    let least = SECOND * 3;
    for turn in 1..=2 {
        unit(&locks, &journal).await;
        assert_eq!(option(&locks).await, Some(7));
        assert_eq!(result(&locks).await.unwrap(), 7);
        assert_eq!(skips(&locks).await.unwrap(), Some(7));
        assert_eq!(answered(&locks, &least).await, 7);
        // They return at once, and leave the lock taken.
        assert_eq!(start.elapsed(), (turn - 1) * SECOND * 3);
        elapse(Duration::from_millis(2_999)).await;
        events::listen();
        unit(&locks, &journal).await;
        assert!(matches!(&*events::take(), [event] if event.level == Level::INFO));
        assert_eq!(option(&locks).await, None);
        assert!(result(&locks).await.unwrap_err().is_busy());
        assert_eq!(skips(&locks).await.unwrap(), None);
        assert_eq!(answered(&locks, &least).await, 1);
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
        assert!(!is_free(&locks, key).await, "{key}");
    }
    elapse(SECOND).await;
    for key in ["1", "2", "3"] {
        assert!(is_free(&locks, key).await, "{key}");
    }
    // A body that took longer leaves nothing behind.
    call(locks.clone(), 4).await.unwrap();
    assert!(is_free(&locks, "4").await);
}

#[tokio::test]
async fn impossible_limits_refuse_the_call() {
    #[distributed_lock(key = "k", locker = locks, expire = "3s", min_hold = least)]
    async fn least_too_long(locks: &Locker, least: Duration) -> Result<(), LockError> {
        unreachable!("runs without a lock")
    }
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
        assert!(error.is_invalid_option(), "{error}");
        assert_eq!(error.key(), Some("disLock:k"));
        let text = error.to_string();
        assert!(text.contains("disLock:k") && text.contains(&format!("`{option}`")), "{text}");
    }
    assert!(is_free(&locks, "k").await);
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
    assert_error_event("max_hold");
    assert_eq!(option(&locks, SECOND * 11), None);
    assert_error_event("min_hold");
    assert_eq!(answered(&locks, &(SECOND * 11)).await, 2);
    assert!(events::take().is_empty());
}
