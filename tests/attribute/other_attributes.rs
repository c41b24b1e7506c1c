//! Other attributes on the same function, above and below.

use std::future::Future;
use std::sync::LazyLock;

use async_trait::async_trait;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::routing::get;
use lockable_runtime::{LockError, Locker, distributed_lock};
use rstest::rstest;

use crate::support::{is_free, locker_now, pause};

/// A store for the functions that take no parameters.
static LOCKS: LazyLock<Locker> = LazyLock::new(locker_now);

#[async_trait]
trait Traced {
    #[distributed_lock(key = "k", locker = locks)]
    #[tracing::instrument(skip(self, locks))]
    async fn above(&self, locks: &Locker, id: u8) -> Option<u8> {
        pause().await;
        assert!(!is_free(locks, "k"));
        Some(id)
    }

    #[tracing::instrument(skip(self, locks))]
    #[distributed_lock(key = "k", locker = locks)]
    async fn below(&self, locks: &Locker, id: u8) -> Option<u8> {
        pause().await;
        assert!(!is_free(locks, "k"));
        Some(id)
    }

    #[distributed_lock(key = "k", locker = locks)]
    #[tracing::instrument(skip(self, locks))]
    fn sync_above(&self, locks: &Locker, id: u8) -> Option<u8> {
        assert!(!is_free(locks, "k"));
        Some(id)
    }

    #[tracing::instrument(skip(self, locks))]
    #[distributed_lock(key = "k", locker = locks)]
    fn sync_below(&self, locks: &Locker, id: u8) -> Option<u8> {
        assert!(!is_free(locks, "k"));
        Some(id)
    }
}

impl Traced for () {}

#[tokio::test]
async fn traced_methods_are_locked_on_both_sides() {
    let locks = locker_now();
    for _ in 0..2 {
        assert_eq!((().above(&locks, 7).await, ().below(&locks, 7).await), (Some(7), Some(7)));
        assert_eq!((().sync_above(&locks, 7), ().sync_below(&locks, 7)), (Some(7), Some(7)));
    }
}

#[tokio::main(flavor = "current_thread")]
#[distributed_lock(key = "main-above", locker = LOCKS, guard = lock)]
async fn main_above() -> Option<u8> {
    pause().await;
    assert!(lock.is_held() && !is_free(&LOCKS, "main-above"));
    Some(7)
}

#[distributed_lock(key = "main-below:{id}", locker = LOCKS, guard = lock)]
#[tokio::main]
async fn main_below(id: u8) -> Result<u8, LockError> {
    pause().await;
    assert!(lock.is_held() && !is_free(&LOCKS, "main-below:7"));
    Ok(id)
}

#[test]
fn tokio_main_runs_under_the_lock_in_both_orders() {
    for _ in 0..2 {
        assert_eq!(main_above(), Some(7));
        assert_eq!(main_below(7).unwrap(), 7);
    }
    assert!(is_free(&LOCKS, "main-above") && is_free(&LOCKS, "main-below:7"));
}

#[tokio::test]
#[distributed_lock(key = "test-above", locker = LOCKS, guard = lock)]
async fn tokio_test_above() -> Result<(), LockError> {
    pause().await;
    assert!(lock.is_held() && !is_free(&LOCKS, "test-above"));
    Ok(())
}

#[distributed_lock(key = "test-below", locker = LOCKS, guard = lock)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokio_test_below() -> Result<(), LockError> {
    pause().await;
    assert!(lock.is_held() && !is_free(&LOCKS, "test-below"));
    Ok(())
}

/// Above, `#[rstest]` moves the lock to its cases, which have no parameters that a key could name.
#[rstest]
#[case(7)]
#[tokio::test]
#[distributed_lock(key = "cases-above", locker = LOCKS)]
async fn rstest_above(#[case] id: u8) -> Result<(), LockError> {
    pause().await;
    assert!(id > 6 && !is_free(&LOCKS, "cases-above"));
    Ok(())
}

#[distributed_lock(key = "cases-below:{id}", locker = LOCKS, guard = lock)]
#[rstest]
#[case(7)]
#[tokio::test]
async fn rstest_below(#[case] id: u8) -> Result<(), LockError> {
    pause().await;
    assert!(lock.is_held() && !is_free(&LOCKS, &format!("cases-below:{id}")));
    Ok(())
}

#[axum::debug_handler]
#[distributed_lock(key = "axum:{id}", locker = locks)]
async fn handler_above(State(locks): State<Locker>, Path(id): Path<u64>) -> Result<String, Busy> {
    pause().await;
    assert!(!is_free(&locks, "axum:7"));
    Ok(id.to_string())
}

#[distributed_lock(key = "axum:{id}", locker = locks)]
#[axum::debug_handler]
async fn handler_below(State(locks): State<Locker>, Path(id): Path<u64>) -> Result<String, Busy> {
    pause().await;
    assert!(!is_free(&locks, "axum:7"));
    Ok(id.to_string())
}

struct Busy;

impl From<LockError> for Busy {
    fn from(_: LockError) -> Self {
        Self
    }
}

impl IntoResponse for Busy {
    fn into_response(self) -> axum::response::Response {
        axum::http::StatusCode::CONFLICT.into_response()
    }
}

#[tokio::test]
async fn axum_handlers_are_locked() {
    fn sent<T: Future + Send + 'static>(future: T) -> T {
        future
    }
    let locks = locker_now();
    let _routes: Router = Router::new()
        .route("/above/{id}", get(handler_above))
        .route("/below/{id}", get(handler_below))
        .with_state(locks.clone());
    let above = sent(handler_above(State(locks.clone()), Path(7))).await;
    let below = sent(handler_below(State(locks.clone()), Path(7))).await;
    assert_eq!((above.ok().as_deref(), below.ok().as_deref()), (Some("7"), Some("7")));
    let _other = locks.lock("axum:7").acquire().await.unwrap();
    let response = handler_above(State(locks), Path(7)).await.into_response();
    assert_eq!(response.status(), axum::http::StatusCode::CONFLICT);
}
