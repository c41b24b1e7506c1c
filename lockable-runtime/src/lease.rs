//! The right to hold a lock until a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::backend::Attempt;
use crate::clock::Moment;
use crate::key::LockKey;
use crate::releaser::Releaser;
use crate::token::FencingToken;

/// The lease of a held lock: a handle that tells about it and does not keep it.
///
/// `guard = name` in [`distributed_lock`](crate::distributed_lock) binds one inside the body;
/// [`LockGuard::lease`](crate::LockGuard::lease) gives another. It is cheap to clone and may
/// outlive the lock: then it says that the lock is no longer held.
///
/// # Examples
/// ```
/// # async fn example() -> Result<(), lockable_runtime::LockError> {
/// let locker = lockable_runtime::Locker::connect("memory://").await?;
/// let guard = locker.lock("order:7").acquire().await?;
/// let lease = guard.lease();
/// assert!(lease.is_held() && lease.remaining().as_secs() >= 9);
/// guard.release().await?;
/// assert!(!lease.is_held());
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Lease(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    attempt: Arc<Attempt>,
    fencing_token: FencingToken,
    valid_until: Moment,
    releaser: Arc<Releaser>,
    /// Set by the guard when it starts to release; never unset.
    ended: AtomicBool,
}

impl Lease {
    /// A lease counts from the sending of its request, so it ends here before it does in the backend.
    pub(crate) fn new(
        attempt: Arc<Attempt>,
        fencing_token: FencingToken,
        since: Moment,
        releaser: Arc<Releaser>,
    ) -> Self {
        let valid_until = since.after(attempt.ttl.usable());
        let ended = AtomicBool::new(false);
        Self(Arc::new(Shared { attempt, fencing_token, valid_until, releaser, ended }))
    }

    /// The whole name of the lock, prefix included.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        &self.0.attempt.key
    }

    /// The number that grows with every grant of this key; hand it to what the lock protects.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.0.fencing_token
    }

    /// How long the holder may still count on the lock; zero when it may not.
    ///
    /// One per cent and two milliseconds less than the backend will keep it, and counted from
    /// before the request was sent.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        if self.0.ended.load(Ordering::Acquire) {
            return Duration::ZERO;
        }
        self.0.valid_until.since(self.0.releaser.backend().now())
    }

    /// Whether the holder may still count on the lock.
    ///
    /// # What this does not guarantee
    /// The answer is as old as the time since: a paused process may act on it too late. Only a
    /// resource that checks the [fencing token](Lease::fencing_token) is safe from that.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    pub(crate) fn end(&self) {
        self.0.ended.store(true, Ordering::Release);
    }

    pub(crate) fn releaser(&self) -> &Arc<Releaser> {
        &self.0.releaser
    }

    pub(crate) fn attempt(&self) -> &Arc<Attempt> {
        &self.0.attempt
    }
}
