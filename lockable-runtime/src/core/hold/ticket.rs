//! Passing a held lock to another process.
//!
//! See "How does a ticket pass a lock to another process?" in DESIGN.md.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::core::backend::{Attempt, Fault, Renewed};
use crate::core::hold::guard::LockGuard;
use crate::core::lease::{Lease, Loss};
use crate::core::releaser::{Known, Releaser};
use crate::core::types::error::LockError;
use crate::core::types::options::Ttl;
use crate::core::types::owner::OwnerToken;
use crate::core::types::ticket::Ticket;

impl LockGuard {
    /// Ends the hold here, and leaves the lock taken for `ttl`, for the process that redeems the ticket.
    ///
    /// It is for [work that begins here and ends elsewhere](crate::guide::leases#begin-here-finish-there): a web
    /// request acquires the lock, and answers; the worker that gets the message [redeems](crate::Locker::redeem) the
    /// ticket.
    ///
    /// # Guarantees
    /// - The lock is never free in between: no other call has it before the ticket is redeemed, or `ttl` is over.
    /// - Nothing of the lock is left in this process: it is not renewed, and [`shutdown`](crate::shutdown) does not
    ///   wait for it. Its [`lease`](LockGuard::lease) is neither held nor lost.
    /// - The fencing token stays the same. The other options of the hold end with it: the request that redeems the
    ///   ticket has its own.
    ///
    /// `ttl` counts from now: choose it for the longest time that the message waits, and not for the work. Until it is
    /// over, a listing shows the lock as [`Ticket`](crate::HolderKind::Ticket), and an operator's request to stop frees
    /// it. To give a ticket back, as after a message that could not be sent, redeem and release it.
    ///
    /// # What this does not guarantee
    /// - The lock does not remember the work: after `ttl`, after the death of the worker and after the end of the work
    ///   it is free alike. So a worker that finds it free acquires it and looks at the data.
    /// - A failover can lose the step that made the ticket, as it can lose a lock. No call can redeem it then. If it loses
    ///   the redemption, a second delivery redeems the ticket again; the fencing token is the same.
    /// - A [`once`](crate::LockRequest::once) run that ends in another process is not done, but released.
    ///
    /// # Errors
    /// [`IntoTicketError::into_guard`] returns the guard, with the lock as it was before the call, after these:
    ///
    /// - [`InvalidOption`](crate::LockErrorKind::InvalidOption) for a `ttl` under 10 ms.
    /// - [`is_lost`](LockError::is_lost), [`is_max_hold_reached`](LockError::is_max_hold_reached) and
    ///   [`is_revoked`](LockError::is_revoked) when the hold is over.
    /// - [`is_unavailable`](LockError::is_unavailable) when the backend has no connection, or refuses.
    ///
    /// It returns `None` after [`is_unavailable`](LockError::is_unavailable) when the backend did not reply, so that
    /// the outcome is unknown: the background releases the lock.
    ///
    /// # Cancel safety
    /// When the future is dropped, the lock is released in the background, whether the ticket was made or not.
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// # let worker = locker.clone();
    /// let guard = locker.lock("order:7").acquire().await?;
    /// let ticket = guard.into_ticket(Duration::from_secs(60)).await?;
    /// let message = ticket.expose_secret();
    ///
    /// // In another process, with a locker of its own:
    /// let guard = worker.redeem(message.parse()?).renew().acquire().await?;
    /// assert!(worker.redeem(message.parse()?).acquire().await.unwrap_err().is_taken());
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn into_ticket(self, ttl: Duration) -> Result<Ticket, IntoTicketError> {
        let (ticket, passed) = self.pass(ttl).await?;
        passed.stays();
        Ok(ticket)
    }

    pub(super) async fn pass(self, ttl: Duration) -> Result<(Ticket, Passed), IntoTicketError> {
        let ttl = match passable(&self.lease, ttl) {
            Ok(ttl) => ttl,
            Err(error) => return Err(IntoTicketError::new(error, Some(self))),
        };
        let (held, store) = (self.lease.attempt(), self.lease.context().backend.store());
        let token = self.lease.fencing_token();
        let ticket = Ticket::new(store, held.key.clone(), token, held.owner.clone());
        let owner = ticket.owner();
        let passed = self.pass_to(owner, ttl).await?;
        Ok((ticket, passed))
    }

    pub(super) async fn pass_to(
        mut self,
        owner: OwnerToken,
        ttl: Ttl,
    ) -> Result<Passed, IntoTicketError> {
        let (held, context) = (Arc::clone(self.lease.attempt()), Arc::clone(self.lease.context()));
        let attempt = Attempt::owned(held.key.clone(), ttl, owner);
        let attempt = Arc::new(attempt.labeled(held.label()));
        self.passing = Some(Arc::clone(&attempt));
        self.lease.passes(true);
        let slot = held.slot;
        let answer =
            context.request(slot, context.backend.transfer(held, Arc::clone(&attempt))).await;
        let releaser = self.passed(answer.map(|answer| answer.found))?;
        Ok(Passed { attempt, releaser, stays: false })
    }

    fn passed(self, answer: Result<Renewed, Fault>) -> Result<Arc<Releaser>, IntoTicketError> {
        let loss = match answer {
            Ok(Renewed::Held) => return Ok(self.leave()),
            Ok(Renewed::Absent) => Loss::Absent,
            Ok(Renewed::Taken) => Loss::Taken,
            Err(fault) => {
                let is_sent = |ticket: &Arc<Attempt>| ticket.sent_at().is_some();
                let is_unknown =
                    !fault.proves_absence && self.passing.as_ref().is_some_and(is_sent);
                let error = self.lease.fault(fault);
                let guard = if is_unknown { None } else { Some(self.kept()) };
                return Err(IntoTicketError::new(error, guard));
            }
        };
        let guard = self.kept();
        guard.lease.refused(loss);
        Err(IntoTicketError::new(guard.lease.lost_error(loss), Some(guard)))
    }

    fn kept(mut self) -> Self {
        self.passing = None;
        self.lease.passes(false);
        self
    }
}

/// A lock that was left taken, and is released if this is dropped.
pub(super) struct Passed {
    attempt: Arc<Attempt>,
    releaser: Arc<Releaser>,
    stays: bool,
}

impl Passed {
    pub(super) fn stays(mut self) {
        self.stays = true;
    }
}

impl Drop for Passed {
    fn drop(&mut self) {
        if !self.stays {
            self.releaser.defer(Arc::clone(&self.attempt), Known::Granted);
        }
    }
}

fn passable(lease: &Lease, ttl: Duration) -> Result<Ttl, LockError> {
    let ttl = Ttl::new("ttl", ttl).map_err(|error| lease.about(|key| error.with_key(key)))?;
    lease.still_held().map(|()| ttl)
}

/// Why there is no [`Ticket`], and the guard if its lock is as before.
///
/// It converts into the [`LockError`], which drops the guard: the lock is released then.
///
/// # Examples
/// ```
/// # async fn example() -> Result<(), lockable_runtime::LockError> {
/// # let locker = lockable_runtime::Locker::connect("memory://").await?;
/// let guard = locker.lock("order:7").acquire().await?;
/// let failed = guard.into_ticket(std::time::Duration::ZERO).await.unwrap_err();
/// println!("{failed}");
/// if let Some(guard) = failed.into_guard() {
///     assert!(guard.lease().is_held());
///     guard.release().await?;
/// }
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Debug)]
pub struct IntoTicketError {
    error: LockError,
    guard: Option<Box<LockGuard>>,
}

impl IntoTicketError {
    fn new(error: LockError, guard: Option<LockGuard>) -> Self {
        Self { error, guard: guard.map(Box::new) }
    }

    /// Returns the reason.
    #[must_use]
    pub fn error(&self) -> &LockError {
        &self.error
    }

    /// Returns the guard; `None` if the outcome is unknown, so that the background releases the lock.
    #[must_use]
    pub fn into_guard(self) -> Option<LockGuard> {
        self.guard.map(|guard| *guard)
    }
}

impl From<IntoTicketError> for LockError {
    fn from(failed: IntoTicketError) -> Self {
        failed.error
    }
}

impl fmt::Display for IntoTicketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no ticket was made: {}", self.error)
    }
}

impl Error for IntoTicketError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        fn check<T: Send + Sync + Unpin + 'static>() {}
        check::<Ticket>();
        check::<IntoTicketError>();
    }
}
