//! A held lock.

use std::sync::Arc;
use std::time::Duration;

use crate::backend::{Fault, Release};
use crate::error::LockError;
use crate::key::LockKey;
use crate::lease::Lease;
use crate::releaser::{Known, Releaser, try_release};
use crate::telemetry;
use crate::token::FencingToken;

/// A held lock, released when this is dropped.
///
/// # What this does not guarantee
/// Code under a guard that is held by hand is not stopped when the lease ends: ask
/// [`is_held`](LockGuard::is_held) before each step that matters, or let
/// [`run`](crate::LockRequest::run) or the attribute hold it. The lease ends by itself after
/// `expire`, whether or not the guard still lives.
///
/// # Cancel safety
/// Dropping the guard, in or outside a runtime, while unwinding or while a runtime shuts down,
/// hands the release to a background thread: it does not block and cannot fail. Before the end of
/// the process, wait for it with [`shutdown`](crate::shutdown).
///
/// # Examples
/// ```
/// # async fn example() -> Result<(), lockable_runtime::LockError> {
/// let locker = lockable_runtime::Locker::connect("memory://").await?;
/// let guard = locker.lock("order:7").acquire().await?;
/// println!("writing with token {}", guard.fencing_token());
/// guard.release().await?;
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub struct LockGuard {
    lease: Lease,
    /// What a drop still has to release.
    duty: Option<Known>,
}

impl LockGuard {
    pub(crate) fn new(lease: Lease) -> Self {
        Self { lease, duty: Some(Known::Granted) }
    }

    /// The whole name of the lock, prefix included.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        self.lease.key()
    }

    /// The number that grows with every grant of this key; hand it to what the lock protects.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.lease.fencing_token()
    }

    /// How long the holder may still count on the lock; zero when it may not.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.lease.remaining()
    }

    /// Whether the holder may still count on the lock; see [`Lease::is_held`].
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.lease.is_held()
    }

    /// A handle that tells about the lease and does not keep it.
    #[must_use]
    pub fn lease(&self) -> Lease {
        self.lease.clone()
    }

    pub(crate) fn releaser(&self) -> &Arc<Releaser> {
        self.lease.releaser()
    }

    /// Releases the lock and waits, at most one command deadline, until it is done.
    ///
    /// # Errors
    /// - [`is_lost`](LockError::is_lost) when the lease had ended: nobody, or another holder, has
    ///   the lock now. Nothing of theirs is touched.
    /// - [`is_unavailable`](LockError::is_unavailable) when the backend gave no answer; the release
    ///   goes on in the background.
    ///
    /// # Cancel safety
    /// The release goes on in the background when the future is dropped.
    pub async fn release(mut self) -> Result<(), LockError> {
        let outcome = self.try_release().await;
        let key = self.key().as_str();
        match outcome {
            Ok(Release::Released) => Ok(()),
            Ok(found) => Err(LockError::released_too_late(key, found == Release::Taken)),
            Err(fault) => Err(LockError::from(fault).with_key(key)),
        }
    }

    /// The release at the end of a body: what goes wrong is told as an event, never instead of
    /// the body's value.
    pub(crate) async fn finish(mut self) {
        if let Ok(found @ (Release::Absent | Release::Taken)) = self.try_release().await {
            telemetry::released_too_late(self.key().as_str(), found == Release::Taken);
        }
    }

    /// Without an answer the guard keeps its duty, and its drop hands the release over.
    async fn try_release(&mut self) -> Result<Release, Fault> {
        self.lease.end();
        self.duty = Some(Known::Releasing);
        let outcome = try_release(self.releaser(), self.lease.attempt()).await;
        if outcome.is_ok() {
            self.duty = None;
        }
        outcome
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        if let Some(known) = self.duty {
            self.lease.end();
            self.releaser().hand_over(Arc::clone(self.lease.attempt()), known);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        fn check<T: Send + Sync + Unpin + 'static>() {}
        check::<LockGuard>();
        check::<Lease>();
    }
}
