//! What an operator does to a lease.
//!
//! See "How does a revoke request reach and stop a holder (pub/sub)?" in DESIGN.md.

use super::Lease;
use super::state::LeaseState;
use crate::core::telemetry;
use crate::core::types::error::LockError;
use crate::core::types::reason::Reason;

impl Lease {
    /// Asks the holder to stop while it still holds the lock; a second request changes nothing.
    pub(crate) fn revoke(&self, reason: &Reason) {
        let reason = reason.shown(self.shown_key());
        if self.update(|state, now| state.revoke(&reason, now)) {
            telemetry::revoked(self.shown_key(), self.fencing_token(), reason.as_ref());
            self.0.lost.notify_waiters();
        }
    }

    pub(crate) fn force(&self, reason: &Reason) {
        let reason = reason.shown(self.shown_key());
        self.update(|state, now| state.force(&reason, now));
    }

    pub(crate) fn may_renew(&self) -> bool {
        self.update(LeaseState::may_renew)
    }

    pub(crate) fn revoked(&self) -> LockError {
        let reason = self.reason().unwrap_or_else(|| Reason::new(""));
        self.about(|key| LockError::revoked(key, &reason))
    }

    pub(super) fn reason(&self) -> Option<Reason> {
        self.state().reason.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::locker::Locker;
    use crate::core::process::clock::tokio_time;

    /// Not only at the deadline, when they would check again.
    #[tokio::test(start_paused = true)]
    async fn a_holder_that_waits_hears_of_a_revocation_at_once() {
        let guard = Locker::in_memory().lock("k").acquire().await.unwrap();
        let (lease, start) = (guard.lease(), tokio_time());
        let revoke = async { lease.revoke(&Reason::new("why")) };
        let (error, ()) = tokio::join!(lease.lost(), revoke);
        assert!(error.is_revoked() && tokio_time() == start, "{error}");
    }
}
