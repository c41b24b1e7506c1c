use std::time::Duration;

use super::acquirer::Acquirer;
use super::busy::Busy;
use crate::core::hold::guard::LockGuard;
use crate::core::process::clock::Moment;
use crate::core::telemetry;
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;
use crate::core::types::options::Options;
use crate::core::types::redact::DisplayKey;

pub(crate) enum Tried<G = LockGuard> {
    Granted(G),
    Busy(Busy),
}

impl<G> Tried<G> {
    pub(crate) fn granted(self) -> Result<G, Busy> {
        match self {
            Self::Granted(granted) => Ok(granted),
            Self::Busy(busy) => Err(busy),
        }
    }
}

/// One call for a lock or a permit: what the steps of acquiring share, and what it returns without a lock.
#[derive(Clone, Copy)]
pub(super) struct OneCall<'a> {
    pub(super) acquirer: &'a Acquirer,
    pub(super) options: &'a Options,
    /// The wait limit counts from here.
    pub(super) start: Moment,
}

impl OneCall<'_> {
    pub(super) fn waited(self) -> Duration {
        self.acquirer.context.backend.now().since(self.start)
    }

    pub(super) fn shown(self, key: &LockKey) -> DisplayKey<'_> {
        self.acquirer.context.reporting.show(key).labeled(self.options.label)
    }

    pub(super) fn busy(self, busy: impl Into<Busy>) -> Result<Tried, LockError> {
        let busy = busy.into();
        match self.options.wait.limit() {
            None => Ok(Tried::Busy(busy)),
            Some(limit) => Err(self.wait_limit_reached(&busy, limit)),
        }
    }

    pub(super) fn wait_limit_reached(self, busy: &Busy, limit: Duration) -> LockError {
        let waited = self.waited();
        let key = busy.key.as_str();
        let error = match busy.words() {
            None => LockError::wait_limit_reached(key, limit, waited),
            Some(words) if limit.is_zero() => LockError::at_limit(key, words),
            Some(words) => {
                let words = format!("after {waited:.0?} of at most {limit:?} {words}");
                LockError::at_limit(key, words)
            }
        };
        let error = self.redacted(error);
        // A call that blocks logs it on its own thread and in its own span.
        if !self.options.caller_blocks {
            telemetry::wait_limit_reached(&error, waited);
        }
        error
    }

    pub(super) fn redacted(self, error: LockError) -> LockError {
        self.acquirer.context.reporting.redact(error).labeled(self.options.label)
    }
}
