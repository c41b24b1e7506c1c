//! Locks for sync functions: their requests run on the background thread, so they work on any thread, in a runtime or
//! outside. Only a call that waits for another holder must not block the thread that this holder needs.
//!
//! See "How does a sync function wait (`block_in_place`)?" in DESIGN.md.

use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, mpsc};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;
use tracing::Instrument;

use crate::core::backend::Environment;
use crate::core::hold::grant::Grant;
use crate::core::hold::reentry::holding;
use crate::core::hold::run::{completed, refuse_start};
use crate::core::locker::request::{Acquire, LockRequest};
use crate::core::telemetry;
use crate::core::types::error::{LockError, LockErrorKind};

/// Blocks on a future without a runtime; `None` when the background thread has ended.
pub(crate) fn wait_for<T: Send + 'static>(
    backend: &dyn Environment,
    future: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let (task, outcome) = answering(future);
    backend.detach(Box::pin(task));
    outcome.recv().ok()
}

/// Blocks on a future that needs nothing of the caller's runtime, not even its timers.
fn wait_elsewhere<T: Send + 'static>(
    backend: &dyn Environment,
    future: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let (task, outcome) = answering(future);
    drop(backend.renewal_runtime(true).spawn(task));
    outcome.recv().ok()
}

/// A task that sends the future's outcome, in the caller's span.
fn answering<T>(future: impl Future<Output = T>) -> (impl Future<Output = ()>, mpsc::Receiver<T>) {
    let future = future.in_current_span();
    let (answer, outcome) = mpsc::sync_channel(1);
    let task = async move {
        // The receiver waits until the answer has come.
        drop(answer.send(future.await));
    };
    (task, outcome)
}

/// Acquires on this thread.
///
/// # Errors
/// As the request's own, and when it would wait on the only thread of a runtime, unless it may block.
pub(crate) fn acquire_blocking<K: Acquire>(
    request: LockRequest<K>,
    may_block: bool,
) -> Result<K::Granted, LockError> {
    let context = Arc::clone(request.context());
    let backend = &*context.backend;
    let reporting = context.reporting;
    let label = request.options().label;
    let ended = || LockError::new(LockErrorKind::Unavailable, "the background thread has ended");
    let count = |error: &LockError| telemetry::acquisition_failed(label, error);
    let request = request.blocking().inspect_err(count)?;
    let Some(key) = request.waits_for().cloned() else {
        return wait_for(backend, K::acquire(request)).unwrap_or_else(|| Err(ended()));
    };
    let start = backend.now();
    let wait = || wait_elsewhere(backend, K::acquire(request)).unwrap_or_else(|| Err(ended()));
    let outcome = if may_block { Some(wait()) } else { where_blocking_is_allowed(wait) };
    let refused = || reporting.redact(LockError::would_block_runtime(key.as_str())).labeled(label);
    let outcome = outcome.unwrap_or_else(|| Err(refused()).inspect_err(count));
    // Of several keys, it names the one that was busy.
    let busy = outcome.as_ref().err().filter(|error| error.is_wait_limit_reached());
    if let Some(error) = busy {
        telemetry::wait_limit_reached(error, backend.now().since(start));
    }
    outcome
}

/// Runs what may block for long; `None` where nothing else could run meanwhile.
///
/// A worker of a multi-thread runtime moves its tasks to another thread first. On a current-thread runtime the thread
/// may be the runtime's own, or one for blocking; which cannot be known.
fn where_blocking_is_allowed<R>(block: impl FnOnce() -> R) -> Option<R> {
    let Ok(runtime) = Handle::try_current() else { return Some(block()) };
    if runtime.runtime_flavor() != RuntimeFlavor::MultiThread {
        return None;
    }
    let has_started = Cell::new(false);
    let start = || {
        has_started.set(true);
        block()
    };
    // A `LocalSet` on such a runtime cannot move to another thread: tokio panics before the start.
    match catch_unwind(AssertUnwindSafe(|| block_in_place(start))) {
        Ok(outcome) => Some(outcome),
        Err(panic) if has_started.get() => resume_unwind(panic),
        Err(_) => None,
    }
}

/// Runs a sync body while the lease is held, then releases; returns the body's value.
///
/// # Errors
/// When the lease ended before the body started, or before it ended. A started body cannot be stopped, so it has
/// completed then.
pub(crate) fn hold_blocking<G: Grant, T>(
    guard: G,
    body: impl FnOnce(G::Lease) -> T,
) -> Result<T, LockError> {
    // This thread may have slept since the grant.
    if let Some(error) = refuse_start(&guard) {
        return Err(error);
    }
    let value = guard.in_span(|| holding(guard.each(), || body(guard.shown().clone())));
    let value = completed(&guard, value)?;
    let backend = guard.each().next().map(|lease| Arc::clone(&lease.context().backend));
    if let Some(backend) = backend {
        // Without an answer the guard was dropped, and its release continues in the background.
        let _finished: Option<()> = wait_for(&*backend, guard.end());
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::core::locker::Locker;
    use crate::core::process::clock::skip;

    #[tokio::test(start_paused = true)]
    async fn no_body_starts_after_its_lease() {
        let guard = acquire_blocking(Locker::in_memory().lock("k"), true).unwrap();
        skip(guard.lease().remaining());
        let error = hold_blocking(guard, |_| unreachable!("runs without a lock")).unwrap_err();
        assert!(error.is_lost() && !error.is_body_finished());
    }

    #[tokio::test(start_paused = true)]
    async fn no_body_starts_after_its_longest_hold() {
        let request = Locker::in_memory().lock("k").renew().max_hold(Duration::from_secs(1));
        let guard = acquire_blocking(request, true).unwrap();
        skip(guard.lease().remaining());
        let error = hold_blocking(guard, |_| unreachable!("runs too late")).unwrap_err();
        assert!(error.is_max_hold_reached());
    }
}
