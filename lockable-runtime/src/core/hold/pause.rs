//! Leaving a held lock taken for a time, without a holder.
//!
//! See "How does a pause keep a lock taken?" in DESIGN.md.

use std::time::Duration;

use crate::core::hold::guard::LockGuard;
use crate::core::hold::set::LockSet;
use crate::core::hold::ticket::Passed;
use crate::core::process::together::join_all;
use crate::core::types::error::LockError;
use crate::core::types::options::Ttl;
use crate::core::types::pause;
use crate::core::types::reason::Reason;

impl LockGuard {
    /// Ends the hold here, and leaves the lock taken for `length`, so that nothing runs under it: for
    /// [maintenance](crate::guide::maintenance), or a deployment.
    ///
    /// A listing, and the error of a call that finds the lock busy, show that it is
    /// [`Paused`](crate::HolderKind::Paused), and why. The pause ends after `length`, which counts from now, or by
    /// [`Admin::force_release`](crate::admin::Admin::force_release). The reason is one line of at most 200 characters,
    /// in plain text for everyone who may read the lock or the logs: write no secret there.
    ///
    /// # Guarantees
    /// - The lock is never free in between, and no process has it: the pause outlives this one, and no release or
    ///   renewal of others ends it.
    /// - [`once`](crate::LockRequest::once) does not take it for a run that is done.
    /// - When it is resumed, the first waiter has the lock; after `length`, within a second.
    ///
    /// # What this does not guarantee
    /// A server that loses its data, or a failover that loses this write, ends the pause. What runs without the lock is
    /// not stopped.
    ///
    /// # Errors
    /// The lock is released then, in the background.
    ///
    /// - [`InvalidOption`](crate::LockErrorKind::InvalidOption) for a `length` under 10 ms or over 24 hours.
    /// - [`is_lost`](LockError::is_lost), [`is_max_hold_reached`](LockError::is_max_hold_reached) and
    ///   [`is_revoked`](LockError::is_revoked) when the hold is over.
    /// - [`is_unavailable`](LockError::is_unavailable) when the backend does not reply, or refuses.
    ///
    /// # Cancel safety
    /// When the future is dropped, the lock is released in the background, whether it was paused or not.
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// use std::time::Duration;
    ///
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// let guard = locker.lock("imports").acquire().await?;
    /// guard.into_pause(Duration::from_secs(1_800), "deploy 42").await?;
    ///
    /// let error = locker.lock("imports").wait(Duration::ZERO).acquire().await.unwrap_err();
    /// assert!(error.is_busy() && error.to_string().ends_with("deploy 42"));
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn into_pause(
        self,
        length: Duration,
        reason: impl AsRef<str>,
    ) -> Result<(), LockError> {
        pause_all(vec![self], length, reason.as_ref()).await
    }
}

impl LockSet {
    /// Pauses all of the locks, as [`LockGuard::into_pause`] one: all permits of a key, or several keys.
    ///
    /// # Errors
    /// As [`LockGuard::into_pause`]; then none of the locks is paused.
    ///
    /// # Cancel safety
    /// As [`LockGuard::into_pause`].
    pub async fn into_pauses(
        self,
        length: Duration,
        reason: impl AsRef<str>,
    ) -> Result<(), LockError> {
        pause_all(self.guards, length, reason.as_ref()).await
    }
}

async fn pause_all(
    guards: Vec<LockGuard>,
    length: Duration,
    reason: &str,
) -> Result<(), LockError> {
    let (length, reason) = (pause::length(length)?, Reason::new(reason));
    let paused = guards.into_iter().map(|guard| pause(guard, length, &reason));
    // After an error those that were paused are dropped here, which releases them.
    let paused = join_all(paused).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    paused.into_iter().for_each(Passed::stays);
    Ok(())
}

async fn pause(guard: LockGuard, length: Ttl, reason: &Reason) -> Result<Passed, LockError> {
    guard.lease.still_held()?;
    Ok(guard.pass_to(pause::token(length, reason)?, length).await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::locker::Locker;

    /// An operator waits for the lock, which the pause would keep.
    #[tokio::test(start_paused = true)]
    async fn a_hold_that_was_asked_to_stop_is_not_paused() {
        let locker = Locker::in_memory();
        let guard = locker.lock("k").acquire().await.unwrap();
        guard.lease.revoke(&Reason::new("a deployment"));
        let error = guard.into_pause(Duration::from_secs(60), "later").await.unwrap_err();
        assert!(error.is_revoked(), "{error}");
        drop(locker.lock("k").acquire().await.unwrap());
    }
}
