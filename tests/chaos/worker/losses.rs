//! What becomes of a call.

use lockable_runtime::{LockError, LockErrorKind};

use crate::journal::{Journal, boot_time};

/// Notes a loss. Whether the call could not ask for the lock, or its limit is over.
pub(crate) fn note(journal: &Journal, outcome: Result<(), LockError>) -> bool {
    let Err(error) = outcome else { return false };
    if error.is_lost() {
        journal.write(format_args!("lost {}", boot_time()));
        return false;
    }
    let is_expected = matches!(
        error.kind(),
        LockErrorKind::Busy
            | LockErrorKind::WaitLimitReached
            | LockErrorKind::Unavailable
            | LockErrorKind::Refused
    );
    assert!(is_expected, "{error}");
    true
}
