//! Randomness of the operating system. The standard library's seed would be the same in a forked process.

use crate::core::types::error::{LockError, LockErrorKind};

/// Random bits; in a simulation those of its seed.
///
/// # Errors
/// When the system gives none: a token that could be guessed, or repeated, would be worse than no lock.
pub(crate) fn random() -> Result<u64, LockError> {
    #[cfg(test)]
    if let Some(bits) = crate::core::process::seeded::bits() {
        return Ok(bits);
    }
    of_system()
}

/// As [`random`], but those of the system also in a simulation.
pub(super) fn of_system() -> Result<u64, LockError> {
    getrandom::u64().map_err(|error| {
        let message = format!("the system gives no randomness: {error}");
        LockError::new(LockErrorKind::Unavailable, message)
    })
}
