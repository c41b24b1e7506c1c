//! Every event this crate tells, and every counter, behind one door. All events have the target
//! `lockable`.

use std::time::Duration;

use tracing::{error, info, warn};

use crate::error::LockError;

#[cfg(feature = "metrics")]
mod counters;
#[cfg(not(feature = "metrics"))]
#[path = "telemetry/no_counters.rs"]
mod counters;

const TARGET: &str = "lockable";

/// A decorated call found another holder and skips its body.
pub(crate) fn contended(key: &str) {
    info!(target: TARGET, key, "another holder has the lock; the call is skipped");
}

/// A call gave up waiting.
pub(crate) fn wait_limit_reached(key: &str, waited: Duration) {
    let waited = waited.as_secs_f64();
    warn!(target: TARGET, key, waited, "the wait limit was reached; another holder has the lock");
}

/// A failure that the return type of a decorated function has no place for.
pub(crate) fn swallowed(error: &LockError) {
    error!(target: TARGET, key = error.key(), %error, "the call gives nothing back");
}

/// A holder can no longer be sure that it holds; told once a lease, when that is found.
pub(crate) fn lost(key: &str, reason: &'static str, why: &str) {
    warn!(target: TARGET, key, reason, "the lock was lost: {why}");
    counters::lost(reason);
}

/// A body came to its end although its lock was lost: its effects may overlap with another's.
pub(crate) fn completed_after_loss(key: &str) {
    error!(target: TARGET, key, "the body completed after the lock was lost");
    counters::completed_after_loss();
}

/// Renewals without an answer: neither renewed nor lost, and tried again.
pub(crate) fn renewal_unanswered(leases: usize, error: &str) {
    warn!(target: TARGET, leases, error, "a renewal was not answered, and is tried again");
    counters::renewal_unanswered(leases);
}

/// A release at the end of a body found that the lock was not its own any more.
pub(crate) fn released_too_late(key: &str, taken: bool) {
    let what = if taken {
        "another holder has the lock that was to be released; it was left alone"
    } else {
        "the lock that was to be released had expired or was deleted"
    };
    warn!(target: TARGET, key, taken, "{what}");
}

/// A release gave up: the lock stays until its lease ends in the backend.
pub(crate) fn release_abandoned(key: &str, error: &str) {
    warn!(target: TARGET, key, error, "the lock could not be released and ends with its lease");
    counters::release_abandoned();
}
