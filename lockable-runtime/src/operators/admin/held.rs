use std::fmt;

use crate::core::holder::Holder;
use crate::core::types::key::LockKey;
use crate::core::types::owner::LockValue;
use crate::core::types::redact::DisplayKey;
use crate::core::types::reporting::Reporting;
use crate::operators::contract::Seen;

/// A lock that has a holder, as a listing found it.
///
/// [`Admin::revoke`](super::Admin::revoke) and [`Admin::force_release`](super::Admin::force_release) affect exactly
/// this hold, and never the next holder of the same lock.
#[derive(Clone)]
pub struct HeldLock {
    key: LockKey,
    name_at: usize,
    holder: Holder,
    queued: usize,
    is_redacted: bool,
    /// What the holder wrote; it is never shown.
    pub(super) owner: Option<LockValue>,
}

impl HeldLock {
    pub(super) fn of(seen: Seen, prefix: &str, reporting: &Reporting) -> Self {
        let holder = Holder::seen(seen.owner.as_ref(), seen.remaining);
        let is_redacted = reporting.redacts_keys;
        let Seen { key, owner, queued, .. } = seen;
        Self { key, name_at: prefix.len(), holder, queued, is_redacted, owner }
    }

    /// Returns the whole name of the lock, prefix included.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        &self.key
    }

    /// Returns the name without the locker's prefix, as [`Locker::lock`](crate::Locker::lock) takes it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.key.as_str().get(self.name_at..).unwrap_or_default()
    }

    /// Returns the holder of the lock.
    #[must_use]
    pub fn holder(&self) -> &Holder {
        &self.holder
    }

    /// Returns the number of processes that wait in the lock's queue.
    ///
    /// How many calls of each wait is unknown. A process that has ended does not count, unless the user may not ask who
    /// [listens](super::Waiter::is_listening).
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queued
    }
}

impl fmt::Debug for HeldLock {
    /// Without the owner token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldLock")
            .field("key", &DisplayKey::new(self.key.as_str(), self.is_redacted).text())
            .field("holder", &self.holder)
            .field("queued", &self.queued)
            .finish_non_exhaustive()
    }
}
