//! Every event this crate tells, behind one door. All have the target `lockable`.

use tracing::{error, info, warn};

use crate::error::LockError;

const TARGET: &str = "lockable";

/// A decorated call found another holder and skips its body.
pub(crate) fn contended(key: &str) {
    info!(target: TARGET, key, "another holder has the lock; the call is skipped");
}

/// A failure that the return type of a decorated function has no place for.
pub(crate) fn swallowed(error: &LockError) {
    error!(target: TARGET, key = error.key(), %error, "the call gives nothing back");
}

/// The lease ended before the body did.
pub(crate) fn lost(key: &str, completed: bool) {
    warn!(target: TARGET, key, completed, "the lock was lost while the body ran");
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
pub(crate) fn release_abandoned(key: &str, error: &LockError) {
    warn!(target: TARGET, key, %error, "the lock could not be released and ends with its lease");
}
