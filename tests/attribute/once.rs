//! `once`: a call that ended well is not repeated within its period.

use std::future::pending;
use std::time::Duration;

use lockable_runtime::{HolderKind, LockError, LockErrorKind, Locker, distributed_lock};
use tokio::time::Instant;
use tracing::Level;

use crate::events;
use crate::support::{
    BoxFuture, Journal, SECOND, ShopError, elapse, is_free, locker, pause, skip_a_lease,
    start_and_drop,
};

#[tokio::test(start_paused = true)]
async fn a_call_that_ended_well_is_not_repeated() {
    #[distributed_lock(key = "k:unit", locker = locks, once = 60)]
    async fn unit(locks: &Locker, journal: &Journal) {
        pause().await;
        journal.write("ran");
    }
    #[distributed_lock(key = "k:option", locker = locks, once = "1m")]
    async fn option(locks: &Locker) -> Option<u8> {
        Some(7)
    }
    #[distributed_lock(key = "k:result", locker = locks, once = SECOND * 60, guard = lock)]
    async fn result(locks: &Locker) -> Result<u8, LockError> {
        assert!(lock.is_held());
        Ok(7)
    }
    #[distributed_lock(key = "k:skips", locker = locks, once = "1m", renew, on_busy = skip)]
    fn skips(locks: &Locker) -> BoxFuture<'_, Result<Option<u8>, ShopError>> {
        Box::pin(async { Ok(Some(7)) })
    }
    #[distributed_lock(key = "k:answers", locker = locks, once = "1m", on_busy = Ok(1))]
    async fn answers(locks: &Locker) -> Result<u8, ShopError> {
        Ok(7)
    }
    #[distributed_lock(key = "k:sync", locker = locks, once = *period)]
    fn sync(locks: &Locker, period: &Duration) -> Option<u8> {
        Some(7)
    }
    #[distributed_lock(key = "k:sync:answers", locker = locks, once = 60, on_busy = Ok(1), guard = lock)]
    fn sync_answers(locks: &Locker) -> Result<u8, ShopError> {
        assert!(lock.is_held());
        Ok(7)
    }
    let (locks, journal, start) = (locker().await, Journal::default(), Instant::now());
    let period = SECOND * 60;
    for _ in 0..2 {
        unit(&locks, &journal).await;
        assert_eq!(option(&locks).await, Some(7));
        assert_eq!(result(&locks).await.unwrap(), 7);
        assert_eq!(skips(&locks).await.unwrap(), Some(7));
        assert_eq!(answers(&locks).await.unwrap(), 7);
        assert_eq!(sync(&locks, &period), Some(7));
        assert_eq!(sync_answers(&locks).unwrap(), 7);
        elapse(Duration::from_millis(59_999)).await;
        events::listen();
        unit(&locks, &journal).await;
        assert_skipped("disLock:k:unit");
        assert_eq!(option(&locks).await, None);
        assert!(result(&locks).await.unwrap_err().is_done());
        assert_eq!(skips(&locks).await.unwrap(), None);
        assert_eq!(answers(&locks).await.unwrap(), 1);
        assert_eq!(sync(&locks, &period), None);
        assert_eq!(sync_answers(&locks).unwrap(), 1);
        elapse(Duration::from_millis(1)).await;
    }
    assert_eq!(start.elapsed(), SECOND * 120);
    assert_eq!(journal.entries(), ["ran"; 2]);
}

/// The only event says when the run was that counts, and until when it does.
fn assert_skipped(key: &str) {
    let words =
        [key, "its run is done", " began at ", "Z ended well", " until ", "Z; the call is skipped"];
    events::assert_only(Level::INFO, &words);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_did_not_end_well_is_repeated() {
    #[distributed_lock(key = "{way}", locker = locks, once = "1h", renew, max_hold = "5s")]
    async fn call(locks: Locker, way: u8) -> Result<(), ShopError> {
        pause().await;
        match way {
            1 => Err(ShopError::SoldOut),
            2 => panic!("on purpose"),
            3 | 4 => pending().await,
            5 => {
                skip_a_lease();
                Ok(())
            }
            _ => Ok(()),
        }
    }
    #[distributed_lock(key = "sync:{way}", locker = locks, once = "1h")]
    fn sync(locks: &Locker, way: u8) -> Option<u8> {
        match way {
            1 => return None,
            2 => panic!("on purpose"),
            3 => skip_a_lease(),
            _ => {}
        }
        Some(way)
    }
    let locks = locker().await;
    assert!(matches!(call(locks.clone(), 1).await, Err(ShopError::SoldOut)));
    assert!(tokio::spawn(call(locks.clone(), 2)).await.unwrap_err().is_panic());
    start_and_drop(call(locks.clone(), 3)).await;
    assert!(call(locks.clone(), 4).await.is_err());
    assert!(call(locks.clone(), 5).await.is_err());
    assert_eq!(sync(&locks, 1), None);
    let panicking = std::panic::AssertUnwindSafe(|| sync(&locks, 2));
    assert!(std::panic::catch_unwind(panicking).is_err());
    assert_eq!(sync(&locks, 3), None);
    pause().await;
    for key in ["1", "2", "3", "4", "5", "sync:1", "sync:2", "sync:3"] {
        assert!(is_free(&locks, key), "{key}");
    }
    call(locks.clone(), 6).await.unwrap();
    assert_eq!(locks.inspect("6").await.unwrap().unwrap().kind(), HolderKind::Done);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_a_run_hears_that_it_is_done() {
    #[distributed_lock(key = "k", locker = locks, once = "1h", wait = "1m")]
    async fn call(locks: &Locker, journal: &Journal) -> Result<(), LockError> {
        journal.write("ran");
        elapse(SECOND * 3).await;
        Ok(())
    }
    let (locks, journal, start) = (locker().await, Journal::default(), Instant::now());
    let (first, second) = tokio::join!(call(&locks, &journal), call(&locks, &journal));
    first.unwrap();
    let error = second.unwrap_err();
    assert!(error.is_done() && error.to_string().contains("disLock:k"), "{error}");
    assert!(start.elapsed() < SECOND * 4, "{:?}", start.elapsed());
    assert_eq!(journal.entries(), ["ran"]);
}

/// What the guide recommends for a daily job whose key does not name the day, whatever the night is like.
#[tokio::test(start_paused = true)]
async fn twenty_hours_skip_no_night_and_repeat_none() {
    #[distributed_lock(key = "nightly", locker = locks, renew, once = "20h", on_busy = skip)]
    async fn nightly(locks: &Locker, journal: &Journal) -> Result<(), LockError> {
        journal.write("ran");
        Ok(())
    }
    const HOUR: Duration = Duration::from_secs(3_600);
    for late in [Duration::ZERO, Duration::from_millis(120), HOUR * 3 / 2, SECOND * 10_799] {
        for night in [HOUR * 23, HOUR * 24, HOUR * 25] {
            let (locks, journal, start) = (locker().await, Journal::default(), Instant::now());
            // The run, a repeated trigger of its night, a machine that was down, and the next night.
            for (trigger, runs) in
                [(late, 1), (late + SECOND, 1), (late + HOUR * 12, 1), (night, 2)]
            {
                tokio::time::sleep_until(start + trigger).await;
                nightly(&locks, &journal).await.unwrap();
                assert_eq!(journal.entries().len(), runs, "{late:?}, {night:?}: after {trigger:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_period_of_no_length_refuses_the_call() {
    #[distributed_lock(key = "k", locker = locks, once = period)]
    async fn call(locks: &Locker, period: Duration) -> Result<(), LockError> {
        unreachable!("runs without a lock")
    }
    let locks = locker().await;
    for period in [Duration::ZERO, Duration::MAX] {
        let error = call(&locks, period).await.unwrap_err();
        assert_eq!((error.kind(), error.key()), (LockErrorKind::InvalidOption, Some("disLock:k")));
        assert!(error.to_string().contains("`once`"), "{error}");
    }
    assert!(is_free(&locks, "k"));
}
