//! The outcome of a try where a busy lock is expected too.

use lockable_runtime::LockError;

/// What was acquired; `None` when another holder has the lock.
///
/// # Panics
/// When it failed for another reason: a loop that tries again would hide that.
#[track_caller]
pub fn unless_busy<T>(outcome: Result<T, LockError>) -> Option<T> {
    match outcome {
        Err(error) if !error.is_busy() => panic!("{error}"),
        outcome => outcome.ok(),
    }
}
