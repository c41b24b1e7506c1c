//! What a backend reports without a request, as the last part of its contract.

use super::fault::Fault;
use crate::core::types::key::LockKey;
use crate::core::types::owner::OwnerToken;
use crate::core::types::reason::Reason;
use crate::core::types::slot::Slot;

/// A message of a release: this lock is reserved for this waiter for a moment. It grants nothing: the waiter
/// queries, and the answer does.
///
/// See "Why does a message grant nothing?" in DESIGN.md.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct WakeUp {
    /// The lock, or the permit.
    pub(crate) key: LockKey,
    pub(crate) owner: OwnerToken,
}

/// A message of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Revocation {
    pub(crate) verb: Verb,
    /// What the holder wrote.
    pub(crate) owner: String,
    pub(crate) key: LockKey,
    pub(crate) reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// The holder is asked to stop and release.
    Revoke,
    /// The lock was taken away.
    Forced,
}

/// A setting of a server that endangers locks.
pub(crate) struct Danger<'a> {
    pub(crate) server: &'a str,
    pub(crate) code: &'a str,
    pub(crate) message: &'a str,
    pub(crate) advice: &'a str,
}

/// Receives what happens below: one for each locker.
///
/// # Contract
/// - No method blocks: a connection's own task may call it, and its next answer waits meanwhile.
/// - A report is a hint: silence proves nothing, and a report may come late or twice, or from someone else.
/// - `concerns` is whether a report is about the locks of a slot. It is asked within the call only.
pub(crate) trait Events: Send + Sync {
    /// A message says that a lock is reserved for a waiter.
    fn on_wake_up(&self, wake_up: WakeUp);

    /// The subscription is a new one. Wake-ups may have been missed, so every line asks that waits for a lock of these
    /// slots.
    fn on_resubscribed(&self, _concerns: &dyn Fn(Slot) -> bool) {}

    /// A server refuses the subscription to wake-ups, which only an operator can mend; once for each server.
    fn on_unheard(&self, _fault: &Fault) {}

    /// A setting of a server endangers locks; at the first connection of the process to it.
    fn on_endangered(&self, _danger: &Danger<'_>) {}

    /// A certificate ends soon, or has ended, which this sentence says.
    fn on_ending(&self, _certificate: &str) {}

    /// A connection or a subscription to the server of these slots broke: what was last known of their locks may be
    /// over.
    fn on_broken(&self, _fault: &Fault, _concerns: &dyn Fn(Slot) -> bool) {}

    /// A connection was opened: the server of these slots may be another one, or have lost its data, since the others
    /// were.
    fn on_connected(&self, _concerns: &dyn Fn(Slot) -> bool) {}

    /// The lock of this key may have been changed by others.
    fn on_changed(&self, _key: &str) {}

    /// All locks of these slots may have been deleted.
    fn on_flushed(&self, _concerns: &dyn Fn(Slot) -> bool) {}

    /// Changes of these slots' locks are not reported any more, until their leases are checked again.
    fn on_untracked(&self, _concerns: &dyn Fn(Slot) -> bool) {}

    /// An operator has sent a message for the holders of this process.
    fn on_revocation(&self, _revocation: &Revocation) {}
}
