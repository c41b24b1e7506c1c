//! Locks for sync functions: their requests run on the background thread, so they work on any
//! thread, inside a runtime or outside of all.

use std::future::Future;
use std::sync::{Arc, mpsc};

use crate::backend::Backend;
use crate::error::{LockError, LockErrorKind};
use crate::guard::LockGuard;
use crate::locker::LockRequest;
use crate::telemetry;

/// Waits for a future on this thread, without a runtime; `None` when the background thread has ended.
pub(crate) fn wait_for<T: Send + 'static>(
    backend: &dyn Backend,
    future: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let (answer, outcome) = mpsc::sync_channel(1);
    backend.detach(Box::pin(async move {
        // Nobody stops waiting before the answer has come.
        drop(answer.send(future.await));
    }));
    outcome.recv().ok()
}

/// Acquires in one try, waiting on this thread.
pub(crate) fn acquire_blocking(request: LockRequest) -> Result<LockGuard, LockError> {
    let backend = Arc::clone(request.backend());
    let ended = || LockError::new(LockErrorKind::Unavailable, "the background thread has ended");
    wait_for(&*backend, request.acquire()).unwrap_or_else(|| Err(ended()))
}

/// Runs a sync body while the guard's lease is held, then releases; gives the body's value.
///
/// # Errors
/// When the lease ended before the body started, or before it ended. A body that has started cannot
/// be stopped, so it has completed then.
pub(crate) fn hold_blocking<T>(guard: LockGuard, body: impl FnOnce() -> T) -> Result<T, LockError> {
    // This thread may have slept since the grant.
    if !guard.is_held() {
        return Err(lost(&guard, false));
    }
    let value = body();
    if !guard.is_held() {
        return Err(lost(&guard, true));
    }
    let backend = Arc::clone(guard.releaser().backend());
    // Without an answer the guard was dropped, and its release goes on in the background.
    let _finished: Option<()> = wait_for(&*backend, guard.finish());
    Ok(value)
}

fn lost(guard: &LockGuard, completed: bool) -> LockError {
    telemetry::lost(guard.key().as_str(), completed);
    LockError::lost(guard.key().as_str(), completed)
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::locker::Locker;

    #[test]
    fn a_body_does_not_start_after_the_end_of_its_lease() {
        let locks = Locker::builder().url("memory://").connect_lazy().unwrap();
        let guard = acquire_blocking(locks.lock("k").expire(Duration::from_millis(100))).unwrap();
        while guard.is_held() {
            thread::park_timeout(guard.remaining());
        }
        let error = hold_blocking(guard, || unreachable!("runs without a lock")).unwrap_err();
        assert!(error.is_lost() && !error.is_completed());
    }
}
