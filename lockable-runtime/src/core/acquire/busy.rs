//! The outcome of a call that was not granted its lock.

use std::sync::Arc;

use crate::core::holder::{Holder, HolderKind};
use crate::core::telemetry;
use crate::core::types::error::{LockError, LockErrorKind};
use crate::core::types::key::LockKey;
use crate::core::types::options::Options;
use crate::core::types::owner::Held;
use crate::core::types::redact::DisplayKey;
use crate::core::types::reporting::Reporting;

/// Whose lock was busy, and what has it if that is known to be no holder.
pub(crate) struct Busy {
    pub(super) key: LockKey,
    pub(super) obstacle: Option<Box<Holder>>,
    redacts_key: bool,
}

impl Busy {
    pub(super) fn new(key: LockKey, obstacle: Option<Arc<Held>>, reporting: &Reporting) -> Self {
        let obstacle = obstacle.map(|held| Box::new(Holder::of(&held)));
        Self { key, obstacle, redacts_key: reporting.redacts_keys }
    }

    pub(super) fn by(self, other: Option<Box<Holder>>) -> Self {
        Self { obstacle: other.or(self.obstacle), ..self }
    }

    pub(super) fn is_done(&self) -> bool {
        self.obstacle.as_ref().is_some_and(|holder| holder.kind() == HolderKind::Done)
    }

    /// Logs that the call waits for a pause or a ticket; returns whether a log has what it waits for.
    pub(super) fn log_obstacle(&self, options: &Options) -> bool {
        let Some(holder) = self.obstacle.as_ref().filter(|it| it.ends_by_itself()) else {
            return false;
        };
        if holder.kind() != HolderKind::Done {
            let key = self.shown_key();
            telemetry::waits_behind(key.labeled(options.label), &holder.words(key));
        }
        true
    }

    pub(super) fn words(&self) -> Option<String> {
        self.obstacle.as_ref().map(|holder| holder.words(self.shown_key()))
    }

    pub(crate) fn error(&self) -> LockError {
        let key = self.key.as_str();
        let Some(words) = self.words() else { return LockError::busy(key) };
        LockError::new(LockErrorKind::Busy, words).with_key(key)
    }

    fn shown_key(&self) -> DisplayKey<'_> {
        DisplayKey::new(self.key.as_str(), self.redacts_key)
    }
}

impl From<LockKey> for Busy {
    fn from(key: LockKey) -> Self {
        Self::new(key, None, &Reporting::default())
    }
}
