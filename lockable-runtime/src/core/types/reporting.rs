//! What a locker reports of its locks, and whether it redacts their keys.

use std::time::Duration;

use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;
use crate::core::types::redact::DisplayKey;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Reporting {
    pub(crate) redacts_keys: bool,
    /// How long a call waits before its first warning.
    pub(crate) waited_over: Option<Duration>,
}

/// Half a minute is longer than most work under a lock, and short enough to find a deadlock by.
impl Default for Reporting {
    fn default() -> Self {
        Self { redacts_keys: false, waited_over: Some(Duration::from_secs(30)) }
    }
}

impl Reporting {
    pub(crate) fn show<'a>(&self, key: &'a LockKey) -> DisplayKey<'a> {
        DisplayKey::new(key.as_str(), self.redacts_keys)
    }

    pub(crate) fn redact(&self, error: LockError) -> LockError {
        error.redacting_key(self.redacts_keys)
    }
}
