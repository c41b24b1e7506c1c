//! A held lock.

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use crate::core::backend::{Attempt, Fault, Release};
use crate::core::lease::{Ended, Lease, Loss, Status};
use crate::core::local_permits::Occupied;
use crate::core::releaser::{Known, Releaser, try_release};
use crate::core::telemetry::{self, Acquiring, Hold, HoldEnd};
use crate::core::types::error::LockError;
use crate::core::types::options::{Options, Ttl};
use crate::core::waiters::{Entry, Turn};

/// A held lock, released when this is dropped.
///
/// # What this does not guarantee
/// Code under a guard that is held by hand is not stopped when the lease ends. Choose one of these:
///
/// - check [`is_held`](Lease::is_held) before each step that matters;
/// - wait for [`lost`](Lease::lost) beside the work;
/// - let [`run`](crate::LockRequest::run) or the attribute hold the lock.
///
/// Without [`renew`](crate::LockRequest::renew) the lease ends by itself after `expire`, even if the guard still
/// exists.
///
/// # Cancel safety
/// Dropping the guard defers the release to a background thread: it does not block and cannot fail, in and outside of a
/// runtime, while unwinding, and while a runtime shuts down. At the end of `main` call [`release`](LockGuard::release)
/// instead, or wait for it with [`shutdown`](crate::shutdown).
///
/// A program that does neither waits up to 100 ms for releases in the background, when its main thread returns from
/// `main` or calls [`std::process::exit`], if this thread has made a locker or dropped a guard itself. That frees the
/// lock in nearly all programs, but it is no guarantee; it does not help over a link of 30 ms or more, while the server
/// is down, or if another thread exits or the process aborts or is killed. It is tested on Linux; elsewhere it depends
/// on whether the destructors of the main thread's local values run. A lock that is not freed ends with its lease.
///
/// In a process that was forked while the lock was held, the drop does nothing: the lock is the parent's.
///
/// # Examples
/// ```
/// # async fn example() -> Result<(), lockable_runtime::LockError> {
/// let locker = lockable_runtime::Locker::connect("memory://").await?;
/// let guard = locker.lock("order:7").acquire().await?;
/// println!("writing with token {}", guard.lease().fencing_token());
/// guard.release().await?;
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[must_use = "the lock is released when the guard is dropped, and `let _ =` drops it at once: bind it to a name, such as `let _guard`"]
pub struct LockGuard {
    pub(crate) lease: Lease,
    releaser: Arc<Releaser>,
    /// What a drop still has to release.
    unreleased: Option<Known>,
    /// Registers the lease, which is renewed or checked, until the release begins.
    entry: Option<Entry>,
    /// What others of this process wait for, if the lock came from a queue.
    ///
    /// Boxed, because most locks come from none, and a guard is moved often.
    turn: Option<Box<Turn>>,
    /// Until the release begins.
    hold: Option<Hold>,
    /// Set for a permit: another call of this process has it once the release was tried, or the lease is over.
    local_permit: Option<Box<Occupied>>,
    /// The ticket that may have the lock by now, while that is unknown.
    pub(super) passing: Option<Arc<Attempt>>,
}

impl LockGuard {
    pub(crate) fn new(
        lease: Lease,
        releaser: Arc<Releaser>,
        entry: Entry,
        turn: Option<Box<Turn>>,
        hold: Hold,
    ) -> Self {
        let unreleased = Some(Known::Granted);
        let (entry, hold) = (Some(entry), Some(hold));
        Self { lease, releaser, unreleased, entry, turn, hold, local_permit: None, passing: None }
    }

    pub(crate) fn in_local_permit(mut self, local_permit: Occupied) -> Self {
        let lease = self.lease.clone();
        local_permit.lasts(Box::new(move || lease.remaining()));
        self.local_permit = Some(Box::new(local_permit));
        self
    }

    pub(crate) fn begin(mut self, acquiring: Acquiring) -> Self {
        if let Some(hold) = &mut self.hold {
            acquiring.granted(self.lease.shown_key(), self.lease.fencing_token(), hold);
        }
        self
    }

    /// The call has all of its locks now: the limits of the hold count from now.
    pub(crate) fn begin_limits(&self, options: &Options) {
        self.lease.begin(options);
        if let Some(entry) = self.entry.as_ref().filter(|_| !self.lease.renews()) {
            entry.unschedule();
        }
    }

    pub(crate) fn in_scope<R>(&self, step: impl FnOnce() -> R) -> R {
        if let Some(hold) = &self.hold { hold.in_scope(step) } else { step() }
    }

    /// Returns the lease of the lock: its key and its fencing token, how long it lasts, and how to extend it.
    ///
    /// A clone of it may outlive the guard, and does not hold the lock.
    #[must_use]
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Releases the lock and waits until that is done, at most one command deadline.
    ///
    /// With `min_hold` the lock stays taken until that is over, but the call returns at once.
    ///
    /// # Errors
    /// - [`is_lost`](LockError::is_lost) when the lock was lost already, also in a process that was forked while the
    ///   parent held it. If another holder has it, [`is_taken`](LockError::is_taken) holds too; that holder's lock is
    ///   not touched.
    /// - [`is_unavailable`](LockError::is_unavailable) when the backend did not reply; the release continues in the
    ///   background. Also when the connection broke during the release: whether the lock was released or had already
    ///   expired is unknown.
    ///
    /// # Cancel safety
    /// When the future is dropped, the release continues in the background.
    pub async fn release(mut self) -> Result<(), LockError> {
        if self.lease.context().is_inherited() {
            return Err(self.lease.lost_error(Loss::Forked));
        }
        match self.try_release().await {
            Ok(Release::Released) => self.lease.not_lost(),
            Ok(found) => Err(self.lease.released_too_late(found == Release::Taken)),
            Err(fault) => Err(self.lease.fault(fault)),
        }
    }

    /// Releases the lock of a run that ended well, and leaves it done for `period`, counted from the grant.
    ///
    /// Until then other calls with `once` return [`is_done`](LockError::is_done), in any process, and calls without it
    /// find the lock busy. The option `once` of the attribute does this by itself.
    ///
    /// # Guarantees
    /// The lock stays taken only if the lease is held until its release. Otherwise the work can be done again.
    ///
    /// # What this does not guarantee
    /// A server that loses its data forgets what is done.
    ///
    /// # Errors
    /// - As [`release`](LockGuard::release): after [`is_lost`](LockError::is_lost) nothing is done, and a release that
    ///   continues in the background leaves the lock done if it succeeds before the lease ends.
    /// - [`InvalidOption`](crate::LockErrorKind::InvalidOption) if the lock was requested without
    ///   [`once`](crate::LockRequest::once), or for a period under 10 ms; the lock is released then.
    ///
    /// # Cancel safety
    /// When the future is dropped, the release continues in the background, and leaves the lock done.
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # use std::time::Duration;
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// let guard = locker.lock("report:2026-11").once().acquire().await?;
    /// // … write the report …
    /// guard.keep(Duration::from_secs(40 * 86_400)).await?;
    ///
    /// let error = locker.lock("report:2026-11").once().acquire().await.unwrap_err();
    /// assert!(error.is_done());
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn keep(self, period: Duration) -> Result<(), LockError> {
        let checked = Ttl::new("keep", period).and_then(|_| self.lease.may_be_done());
        let checked = checked.map_err(|mistake| self.lease.about(|key| mistake.with_key(key)));
        if checked.is_ok() {
            self.lease.ended_well(period);
        }
        self.release().await?;
        checked
    }

    /// The release at the end of a body: a failure is logged, and never returned instead of the body's value.
    pub(crate) async fn finish(mut self) {
        let is_known = matches!(self.lease.status_here(), Status::Lost(_));
        if let Ok(found @ (Release::Absent | Release::Taken)) = self.try_release().await
            && !is_known
        {
            telemetry::released_too_late(self.lease.shown_key(), found == Release::Taken);
        }
    }

    /// Without a reply the guard stays responsible, and its drop defers the release.
    async fn try_release(&mut self) -> Result<Release, Fault> {
        if let Some(found) = self.end() {
            return Ok(found);
        }
        self.unreleased = Some(Known::Releasing);
        let outcome = match self.turn.take() {
            Some(turn) => {
                // Boxed, because most calls have no turn to end, and would carry the space in vain.
                let mut release = Box::pin(turn.release());
                telemetry::releasing(self.lease.shown_key(), release.as_mut()).await
            }
            None => try_release(self.lease.context(), self.lease.attempt()).await,
        };
        if outcome.is_ok() {
            self.unreleased = None;
        }
        outcome
    }

    /// A ticket has the lock; returns what releases it if the ticket is not used.
    pub(super) fn leave(mut self) -> Arc<Releaser> {
        self.end_lease();
        (self.unreleased, self.passing) = (None, None);
        // The calls that wait here are behind another holder.
        self.turn.take().into_iter().for_each(|turn| turn.lose());
        Arc::clone(&self.releaser)
    }

    /// The lock is still this guard's or a ticket's, which is unknown; the background releases it.
    fn release_either(&mut self, ticket: Arc<Attempt>) {
        self.end_lease();
        self.unreleased = None;
        let held = Arc::clone(self.lease.attempt());
        self.releaser.defer_either(held, ticket, self.local_permit.take());
        self.turn.take().into_iter().for_each(|turn| turn.defer());
    }

    fn end_lease(&mut self) -> Ended {
        self.entry = None;
        let ended = self.lease.end();
        let Ended { status, at, used, is_revoked } = ended;
        let is_lost = matches!(status, Status::Lost(_));
        if let Some(hold) = self.hold.take() {
            let end = match (is_lost, is_revoked) {
                (true, _) => HoldEnd::Lost,
                (false, true) => HoldEnd::Revoked,
                (false, false) => HoldEnd::Released { used },
            };
            hold.end(self.lease.shown_key(), self.lease.fencing_token(), at, end);
        }
        ended
    }

    /// Ends the lease; returns what a release would find, where that is known. A lock that the next waiter of this
    /// process may have is passed to it without a request.
    fn end(&mut self) -> Option<Release> {
        let Ended { status, is_revoked, .. } = self.end_lease();
        let is_lost = matches!(status, Status::Lost(_));
        if let Some(turn) = self.turn.take_if(|_| is_lost) {
            turn.lose();
        }
        let found = match status {
            Status::Lost(Loss::Absent) => Release::Absent,
            Status::Lost(Loss::Taken) => Release::Taken,
            Status::Lost(Loss::Deadline | Loss::Forced | Loss::Forked) => {
                self.unreleased = self.unreleased.map(|known| known.max(Known::Releasing));
                return None;
            }
            Status::Held(_) | Status::MaxHoldReached | Status::Revoked | Status::Released => {
                // A minimum hold keeps it taken, and an operator waits for another owner token.
                let leaves_process = self.lease.attempt().min_hold.is_set() || is_revoked;
                if leaves_process || !self.turn.as_mut().is_some_and(|turn| turn.pass()) {
                    return None;
                }
                telemetry::handed_off_locally(self.lease.shown_key());
                Release::Released
            }
        };
        self.turn = None;
        self.unreleased = None;
        Some(found)
    }

    fn leave_to_parent(&mut self) {
        self.unreleased = None;
        mem::forget((
            self.entry.take(),
            self.turn.take(),
            self.hold.take(),
            self.local_permit.take(),
        ));
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        if self.unreleased.is_some() {
            if self.lease.context().is_inherited() {
                return self.leave_to_parent();
            }
            if let Some(ticket) = self.passing.take().filter(|ticket| ticket.sent_at().is_some()) {
                return self.release_either(ticket);
            }
            self.end();
        }
        if let Some(known) = self.unreleased {
            telemetry::release_deferred(self.lease.shown_key());
            self.releaser.defer_in(
                Arc::clone(self.lease.attempt()),
                known,
                self.local_permit.take(),
            );
            self.turn.take().into_iter().for_each(|turn| turn.defer());
        }
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lease.describe("LockGuard", f)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;
    use crate::core::locker::Locker;
    use crate::core::process::clock::skip;

    #[test]
    fn bounds() {
        fn check<T: Send + Sync + Unpin + 'static>() {}
        check::<LockGuard>();
        check::<Lease>();
    }

    /// Method: a loss that is known, and a call that waits in the line whose turn the holder has.
    #[tokio::test(start_paused = true)]
    async fn a_lock_that_was_lost_is_passed_to_no_call() {
        let locker = Locker::in_memory();
        let call = || locker.lock("k").acquire();
        let first = call().await.unwrap();
        let (mut second, mut third) = (pin!(call()), pin!(call()));
        let mut context = Context::from_waker(Waker::noop());
        assert!(second.as_mut().poll(&mut context).is_pending());
        assert!(third.as_mut().poll(&mut context).is_pending());
        first.release().await.unwrap();
        let second = second.await.unwrap();
        let lost = Arc::clone(second.lease.attempt());
        second.lease.refused(Loss::Taken);
        drop(second);
        assert!(third.await.unwrap().lease.attempt().owner != lost.owner);
    }

    /// The backend has the lock still, because a lease ends earlier here.
    #[tokio::test(start_paused = true)]
    async fn a_release_after_the_deadline_is_no_success() {
        let guard = Locker::in_memory().lock("k").acquire().await.unwrap();
        skip(guard.lease.remaining());
        assert!(guard.release().await.unwrap_err().is_lost());
    }
}
