//! Randomness of the operating system. The standard library's seed would be the same in a process that was
//! forked.

use std::time::Duration;

use crate::types::error::{LockError, LockErrorKind};

/// Random bits; in a simulation those of its seed.
///
/// # Errors
/// When the system gives none: a token that could be guessed, or repeated, would be worse than no lock.
pub(crate) fn random() -> Result<u64, LockError> {
    #[cfg(test)]
    if let Some(bits) = crate::types::seeded::bits() {
        return Ok(bits);
    }
    of_system()
}

/// A random part of a pause, at least half of it: processes that lost their connections at one moment shall not all come
/// back at another one.
#[cfg(feature = "redis")]
pub(crate) fn jittered(pause: Duration) -> Duration {
    // Without randomness it is no lock that suffers.
    let [part, ..] = random().unwrap_or(u64::MAX).to_le_bytes();
    pause / 2 + pause / 2 * u32::from(part) / u32::from(u8::MAX)
}

/// The same for what a simulation shares with the tests beside it.
pub(super) fn of_system() -> Result<u64, LockError> {
    getrandom::u64().map_err(|error| {
        let message = format!("the system gives no randomness: {error}");
        LockError::new(LockErrorKind::Unavailable, message)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn pauses_differ_and_keep_their_bounds() {
        let pause = Duration::from_millis(100);
        let pauses: HashSet<_> = (0..1_000).map(|_| jittered(pause)).collect();
        assert!(pauses.iter().all(|drawn| (pause / 2..=pause).contains(drawn)), "{pauses:?}");
        assert!(pauses.len() > 100, "{} pauses", pauses.len());
        assert_eq!(jittered(Duration::ZERO), Duration::ZERO);
    }
}
