//! What becomes of a call whose lock is busy, lost, or cannot be had at all.

use std::future::{pending, poll_fn};
use std::task::Poll;
use std::time::Duration;

use lockable_runtime::__internals::MemoryStore;
use lockable_runtime::{LockError, LockErrorKind, Locker, distributed_lock};
use tracing::Level;

use crate::events;
use crate::support::{Journal, ShopError, hold, is_free, locker, pause, poll_once};

#[tokio::test]
async fn busy_is_an_info_event_that_names_the_key() {
    #[distributed_lock(key = "order:{id}", locker = locks)]
    async fn unit(locks: &Locker, id: u8) {
        unreachable!("runs beside another holder")
    }
    #[distributed_lock(key = "order:{id}", locker = locks, on_busy = Ok(()))]
    async fn result(locks: &Locker, id: u8) -> Result<(), ShopError> {
        unreachable!("runs beside another holder")
    }
    #[distributed_lock(key = "order:{id}", locker = locks)]
    async fn error(locks: &Locker, id: u8) -> Result<(), ShopError> {
        unreachable!("runs beside another holder")
    }
    let locks = locker().await;
    let _other = hold(&locks, "order:7").await;
    events::listen();
    unit(&locks, 7).await;
    result(&locks, 7).await.unwrap();
    error(&locks, 7).await.unwrap_err();
    let logged = events::take();
    assert_eq!(logged.len(), 3, "{logged:#?}");
    for event in logged {
        assert_eq!(event.level, Level::INFO);
        assert!(event.fields.contains("disLock:order:7"), "{event:?}");
    }
}

#[tokio::test]
async fn a_call_that_succeeds_logs_nothing() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn call(locks: &Locker) -> Option<u8> {
        pause().await;
        Some(7)
    }
    let locks = locker().await;
    events::listen();
    assert_eq!(call(&locks).await, Some(7));
    assert!(events::take().is_empty());
}

#[tokio::test]
async fn on_busy_may_do_all_that_the_body_may() {
    #[distributed_lock(
        key = "{id}",
        locker = locks,
        on_busy = {
            pause().await;
            log.push_str(&name);
            Ok(id + u8::try_from(name.len()).map_err(|_| ShopError::SoldOut)?)
        }
    )]
    async fn call(locks: &Locker, id: u8, name: String, log: &mut String) -> Result<u8, ShopError> {
        drop((name, log));
        Ok(id)
    }
    #[distributed_lock(key = "{id}", locker = locks, on_busy = return Some(1))]
    #[expect(clippy::needless_return, reason = "an answer may return")]
    async fn returns(locks: &Locker, id: u8) -> Option<u8> {
        Some(id)
    }
    let (locks, mut log) = (locker().await, String::new());
    assert!(matches!(call(&locks, 7, "abc".to_owned(), &mut log).await, Ok(7)));
    let _other = hold(&locks, "7").await;
    assert!(matches!(call(&locks, 7, "abc".to_owned(), &mut log).await, Ok(10)));
    assert_eq!(log, "abc");
    assert_eq!(returns(&locks, 7).await, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_stops_the_body_and_says_so() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn unit(locks: &Locker) {
        pending::<()>().await;
    }
    #[distributed_lock(key = "k", locker = locks)]
    async fn option(locks: &Locker) -> Option<u8> {
        pending().await
    }
    #[distributed_lock(key = "k", locker = locks)]
    async fn result(locks: &Locker) -> Result<u8, LockError> {
        pending().await
    }
    #[distributed_lock(key = "k", locker = locks, on_busy = 1, on_error = |err| {
        assert!(err.is_lost() && !err.is_completed());
        2
    })]
    async fn answered(locks: &Locker) -> u8 {
        pending().await
    }
    let locks = locker().await;
    events::listen();
    unit(&locks).await;
    assert_error_event("disLock:k");
    assert_eq!(option(&locks).await, None);
    assert_error_event("disLock:k");
    let error = result(&locks).await.unwrap_err();
    assert!(error.is_lost() && !error.is_completed());
    assert_eq!(answered(&locks).await, 2);
    assert!(events::take().iter().all(|event| event.level == Level::WARN));
    assert!(is_free(&locks, "k").await);
}

/// The error has no place in what the call gave back, so exactly one error event says it.
fn assert_error_event(key: &str) {
    let logged = events::take();
    let errors: Vec<_> = logged.iter().filter(|event| event.level == Level::ERROR).collect();
    assert_eq!(errors.len(), 1, "{logged:#?}");
    assert!(errors[0].fields.contains(key), "{errors:?}");
}

/// Goal: after a pause of the process no further step of the body runs, although it was woken.
/// Method: the clock jumps over the deadline between two polls, and the body wakes itself in each.
#[tokio::test(start_paused = true)]
async fn a_body_is_not_polled_after_its_deadline() {
    #[distributed_lock(key = "k", expire = 3, locker = locks)]
    async fn counts(locks: &Locker, polls: &mut u32) -> Result<(), LockError> {
        poll_fn(|cx| {
            *polls += 1;
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        })
        .await;
        Ok(())
    }
    let (locks, mut polls) = (locker().await, 0);
    let mut call = Box::pin(counts(&locks, &mut polls));
    assert!(poll_once(call.as_mut()).await.is_none());
    tokio::time::advance(Duration::from_millis(2_960)).await;
    assert!(poll_once(call.as_mut()).await.is_none());
    tokio::time::advance(Duration::from_millis(8)).await;
    let outcome = poll_once(call.as_mut()).await.expect("the call continues");
    assert!(outcome.unwrap_err().is_lost());
    drop(call);
    assert_eq!(polls, 2);
}

#[tokio::test(start_paused = true)]
async fn a_lost_body_is_dropped_before_its_call_ends() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn call(locks: &Locker, journal: &Journal) {
        let _transaction = journal.drops("transaction");
        pending::<()>().await;
    }
    let (locks, journal) = (locker().await, Journal::default());
    call(&locks, &journal).await;
    journal.write("returned");
    assert_eq!(journal.entries(), ["transaction", "returned"]);
}

#[tokio::test(start_paused = true)]
async fn completion_after_the_loss_is_an_error_naming_both() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn call(locks: &Locker, done: &mut bool) -> Result<u8, LockError> {
        tokio::time::advance(Duration::from_secs(11)).await;
        *done = true;
        Ok(7)
    }
    let (locks, mut done) = (locker().await, false);
    let error = call(&locks, &mut done).await.unwrap_err();
    assert!(error.is_lost());
    assert_eq!(error.is_completed(), done);
}

#[tokio::test]
async fn a_failed_release_leaves_the_bodys_own_error() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn call(locks: &Locker, lose: Option<&MemoryStore>) -> Result<u8, ShopError> {
        pause().await;
        if let Some(store) = lose {
            store.flush();
        }
        Err(ShopError::SoldOut)
    }
    let locks = Locker::connect("memory://own-error").await.unwrap();
    let store = MemoryStore::open("own-error").unwrap();
    events::listen();
    assert!(matches!(call(&locks, None).await, Err(ShopError::SoldOut)));
    assert!(events::take().is_empty());
    assert!(matches!(call(&locks, Some(&store)).await, Err(ShopError::SoldOut)));
    let logged = events::take();
    assert!(matches!(logged.as_slice(), [event] if event.level == Level::WARN), "{logged:#?}");
}

#[tokio::test]
async fn a_failure_without_a_return_value_is_logged() {
    #[distributed_lock(key = "k:{id}", locker = locks)]
    async fn unit(locks: &Locker, id: &str) {
        unreachable!("runs without a lock")
    }
    #[distributed_lock(key = "k:{id}", locker = locks)]
    async fn option(locks: &Locker, id: &str) -> Option<u8> {
        unreachable!("runs without a lock")
    }
    let locks = locker().await;
    events::listen();
    unit(&locks, "").await;
    assert_error_event("k:{id}");
    assert_eq!(option(&locks, "").await, None);
    assert_error_event("k:{id}");
}

/// What `on_error` may use beside the error.
static ANSWERS: [u8; 2] = [3, 4];

#[tokio::test]
async fn on_error_sees_the_error_statics_and_copied_parameters() {
    #[distributed_lock(
        key = "k:{id}",
        locker = locks,
        on_busy = skip,
        on_error = |err: LockError| -> Result<(), (LockErrorKind, u8)> {
            Err((err.kind(), number + ANSWERS[0]))
        }
    )]
    async fn call(locks: &Locker, id: String, number: u8) -> Result<(), (LockErrorKind, u8)> {
        drop((id, number));
        Ok(())
    }
    let locks = locker().await;
    assert_eq!(call(&locks, "7".to_owned(), 4).await, Ok(()));
    let error = call(&locks, String::new(), 4).await;
    assert_eq!(error, Err((LockErrorKind::InvalidKey, 7)));
    let _other = hold(&locks, "k:7").await;
    assert_eq!(call(&locks, "7".to_owned(), 4).await, Ok(()));
}

#[tokio::test]
async fn an_unreachable_server_refuses_the_call() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn call(locks: &Locker) -> Result<(), LockError> {
        unreachable!("runs without a lock")
    }
    // The discard port, where nothing listens.
    let locks = Locker::builder().url("redis://127.0.0.1:9").connect_lazy().unwrap();
    assert!(call(&locks).await.unwrap_err().is_unavailable());
}
