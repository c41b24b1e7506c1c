//! What a locker reports of its locks.

use std::time::Duration;

use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::redact::DisplayKey;

/// What a locker reports of its locks, and whether it redacts their keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reporting {
    pub(crate) redacts_keys: bool,
    /// The share of a lease that a body may use without a warning.
    pub(crate) held_over: Option<f64>,
    /// How long a lease may be renewed without a warning.
    pub(crate) renewed_over: Option<Duration>,
    /// How long a call may wait without a warning.
    pub(crate) waited_over: Option<Duration>,
}

impl Default for Reporting {
    /// A body that uses four fifths of its lease is stopped soon, on a slower day. How long a call may
    /// wait only its caller knows. What is renewed for a day is a body that hangs, or work without an end.
    fn default() -> Self {
        let renewed_over = Some(Duration::from_secs(24 * 60 * 60));
        Self { redacts_keys: false, held_over: Some(0.8), renewed_over, waited_over: None }
    }
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
