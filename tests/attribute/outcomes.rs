//! What becomes of a call whose lock is busy, or cannot be had at all.

use lockable_runtime::__internals::MemoryStore;
use lockable_runtime::{LockError, LockErrorKind, Locker, distributed_lock};
use tracing::Level;

use crate::events;
use crate::support::{ShopError, hold, locker, pause};

#[tokio::test(start_paused = true)]
async fn a_busy_call_is_logged_at_info_where_it_returns_no_error() {
    #[distributed_lock(key = "order:{id}", locker = locks)]
    async fn unit(locks: &Locker, id: u8) {
        unreachable!("runs beside another holder")
    }
    #[distributed_lock(key = "order:{id}", locker = locks, on_busy = Ok(()))]
    async fn result(locks: &Locker, id: u8) -> Result<(), ShopError> {
        unreachable!("runs beside another holder")
    }
    #[distributed_lock(key = "order:{id}", locker = locks, on_busy = skip)]
    async fn skips(locks: &Locker, id: u8) -> Result<(), ShopError> {
        unreachable!("runs beside another holder")
    }
    #[distributed_lock(key = "order:{id}", locker = locks, on_busy = 1, on_error = |_| 2)]
    fn sync(locks: &Locker, id: u8) -> u8 {
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
    events::assert_only(Level::INFO, &["disLock:order:7"]);
    result(&locks, 7).await.unwrap();
    events::assert_only(Level::INFO, &["disLock:order:7"]);
    skips(&locks, 7).await.unwrap();
    events::assert_only(Level::INFO, &["disLock:order:7"]);
    assert_eq!(sync(&locks, 7), 1);
    events::assert_only(Level::INFO, &["disLock:order:7"]);
    error(&locks, 7).await.unwrap_err();
    let logged = events::take_all();
    assert!(logged.iter().all(|event| event.level == Level::DEBUG), "{logged:#?}");
    let is_busy = |fields: &str| fields.contains(r#"outcome="busy""#) && fields.contains("order:7");
    assert!(matches!(&*logged, [busy] if is_busy(&busy.fields)), "{logged:#?}");
}

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
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
async fn a_failed_release_leaves_the_bodys_own_error() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn call(locks: &Locker, lose: Option<&MemoryStore>) -> Result<u8, ShopError> {
        pause().await;
        if let Some(store) = lose {
            store.flush();
        }
        Err(ShopError::SoldOut)
    }
    #[distributed_lock(key = "k", locker = locks)]
    fn sync(locks: &Locker, lose: &MemoryStore) -> Result<u8, ShopError> {
        lose.flush();
        Err(ShopError::SoldOut)
    }
    let locks = Locker::connect("memory://own-error").await.unwrap();
    let store = MemoryStore::open("own-error").unwrap();
    events::listen();
    assert!(matches!(call(&locks, None).await, Err(ShopError::SoldOut)));
    assert!(events::take().is_empty());
    assert!(matches!(call(&locks, Some(&store)).await, Err(ShopError::SoldOut)));
    events::assert_only(Level::WARN, &[]);
    assert!(matches!(sync(&locks, &store), Err(ShopError::SoldOut)));
}

#[tokio::test(start_paused = true)]
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
    assert_eq!(events::count_errors(&["k:{id}"]), 1);
    assert_eq!(option(&locks, "").await, None);
    assert_eq!(events::count_errors(&["k:{id}"]), 1);
}

/// What `on_error` may use beside the error.
static ANSWERS: [u8; 2] = [3, 4];

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_refuses_the_call() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn call(locks: &Locker) -> Result<(), LockError> {
        unreachable!("runs without a lock")
    }
    #[distributed_lock(key = "k", locker = locks)]
    fn sync(locks: &Locker) -> Result<(), LockError> {
        unreachable!("runs without a lock")
    }
    // The discard port, where nothing listens.
    let locks = Locker::builder().url("redis://127.0.0.1:9").connect_lazy().unwrap();
    assert!(call(&locks).await.unwrap_err().is_unavailable());
    assert!(sync(&locks).unwrap_err().is_unavailable());
}
