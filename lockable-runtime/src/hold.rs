//! A body that runs only while its lease is held.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::Sleep;

use crate::error::LockError;
use crate::guard::LockGuard;
use crate::telemetry;

/// Runs the body while the guard's lease is held, then releases; gives the body's value.
///
/// The body is dropped before the lock is released on every way out: at its end, when the lease is
/// lost, when it panics, and when this future is dropped.
///
/// # Errors
/// When the lease was lost before the body's end, whether the body was stopped or had completed
/// between two looks at the clock.
///
/// # Cancel safety
/// Dropping this future drops the body, and then releases in the background.
pub async fn hold<F: Future>(
    guard: LockGuard,
    body: Pin<&mut Option<F>>,
) -> Result<F::Output, LockError> {
    // Declared after the guard, so dropped before it when this future is dropped.
    let mut body = Body(body);
    let mut timer = None;
    let outcome = poll_fn(|cx| body.poll_while_held(&guard, &mut timer, cx)).await;
    drop(body);
    match outcome {
        Ok(value) => {
            guard.finish().await;
            Ok(value)
        }
        Err(error) => {
            telemetry::lost(guard.key().as_str(), error.is_completed());
            Err(error)
        }
    }
}

/// The pinned body; dropped in place with this.
struct Body<'a, F>(Pin<&'a mut Option<F>>);

impl<F: Future> Body<'_, F> {
    /// Reads the clock before every poll of the body, and after the last.
    ///
    /// A timer alone would not do: after a pause of the process it lets the body take one more
    /// step before it goes off. It only wakes a body that waits past its deadline.
    fn poll_while_held(
        &mut self,
        guard: &LockGuard,
        timer: &mut Option<Pin<Box<Sleep>>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<F::Output, LockError>> {
        loop {
            if !guard.is_held() {
                return Poll::Ready(Err(LockError::lost(guard.key().as_str(), false)));
            }
            if let Some(body) = self.0.as_mut().as_pin_mut()
                && let Poll::Ready(value) = body.poll(cx)
            {
                let completed = || LockError::lost(guard.key().as_str(), true);
                return Poll::Ready(if guard.is_held() { Ok(value) } else { Err(completed()) });
            }
            ready!(poll_deadline(guard, timer, cx));
        }
    }
}

/// Ready when the lease should have ended; a timer that went off early is set again.
fn poll_deadline(
    guard: &LockGuard,
    timer: &mut Option<Pin<Box<Sleep>>>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    let backend = guard.releaser().backend();
    let sleep = timer.get_or_insert_with(|| Box::pin(backend.timer(guard.remaining())));
    ready!(sleep.as_mut().poll(cx));
    *timer = None;
    Poll::Ready(())
}

impl<F> Drop for Body<'_, F> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}
