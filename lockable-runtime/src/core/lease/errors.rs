//! The errors of a lease that can no longer be relied on.

use std::borrow::Cow;

use super::{Lease, Loss, Status};
use crate::core::backend::Fault;
use crate::core::types::error::{Cause, LockError, LockErrorKind};

impl Lease {
    pub(crate) fn loss_error(&self, loss: Loss, completed: bool) -> LockError {
        let what = if completed {
            "the lock was lost before the body completed, and its value was dropped; its effects may \
             overlap with the next holder's"
        } else {
            "the lock was lost while the body ran, and the body was stopped"
        };
        self.error_of(loss, what).with_completed(completed)
    }

    /// # Errors
    /// When the lock was found lost before its release.
    pub(crate) fn not_lost(&self) -> Result<(), LockError> {
        let found = self.state().loss();
        found.map_or(Ok(()), |loss| Err(self.lost_error(loss)))
    }

    pub(crate) fn lost_error(&self, loss: Loss) -> LockError {
        self.error_of(loss, "the lock was lost")
    }

    fn error_of(&self, loss: Loss, what: &str) -> LockError {
        let why = self.why(loss);
        let error = self.about(|key| LockError::lost(key, format!("{what}: {why}")));
        let cause = self.unrenewed().filter(|_| loss == Loss::Deadline).map(|cause| cause as Cause);
        error.with_taken(loss == Loss::Taken).with_source(cause)
    }

    pub(super) fn why(&self, loss: Loss) -> Cow<'static, str> {
        loss.why(self.renews(), self.unrenewed().as_deref(), self.reason().as_ref())
    }

    pub(crate) fn max_hold_reached(&self) -> LockError {
        self.about(LockError::max_hold_reached)
    }

    pub(crate) fn over(&self, status: Status) -> Option<LockError> {
        match status {
            Status::Held(_) | Status::Released => None,
            Status::MaxHoldReached => Some(self.max_hold_reached()),
            Status::Revoked => Some(self.revoked()),
            Status::Lost(loss) => Some(self.lost_error(loss)),
        }
    }

    /// # Errors
    /// When its call has no `once`: no other call could see that the lock is done.
    pub(crate) fn may_be_done(&self) -> Result<(), LockError> {
        let message = "`keep` is for a lock that was requested with `once`; write `.once()` before `.acquire()`, so \
                       that other calls see that the run is done";
        let refused = || LockError::of_flaw(LockErrorKind::InvalidOption, message);
        self.0.done_until.map(drop).ok_or_else(refused)
    }

    pub(crate) fn released_too_late(&self, taken: bool) -> LockError {
        let forced = self.state().loss().filter(|loss| *loss == Loss::Forced);
        let known = forced.map(|loss| self.lost_error(loss).with_taken(taken));
        known.unwrap_or_else(|| self.about(|key| LockError::released_too_late(key, taken)))
    }

    pub(crate) fn fault(&self, fault: Fault) -> LockError {
        fault.about(self.key(), &self.context().reporting).labeled(self.0.label)
    }

    /// An error about this lock, redacted if its key is.
    pub(crate) fn about(&self, error: impl FnOnce(&str) -> LockError) -> LockError {
        self.context().reporting.redact(error(self.key().as_str())).labeled(self.0.label)
    }
}
