//! What a locker reports of its locks.

use std::time::Duration;

use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::redact::DisplayKey;

/// What a locker reports of its locks, and whether it redacts their keys.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reporting {
    pub(crate) redacts_keys: bool,
    /// How long a call may wait without a warning; only its caller knows.
    pub(crate) waited_over: Option<Duration>,
}

impl Reporting {
    pub(crate) fn show<'a>(&self, key: &'a LockKey) -> DisplayKey<'a> {
        DisplayKey::new(key.as_str(), self.redacts_keys)
    }

    /// The error as it may be shown.
    pub(crate) fn redact(&self, error: LockError) -> LockError {
        error.redacting_key(self.redacts_keys)
    }
}
