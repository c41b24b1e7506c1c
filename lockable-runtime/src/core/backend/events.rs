//! What a backend reports without a request, as the last part of its contract.

use super::fault::Fault;
use crate::core::types::key::LockKey;
use crate::core::types::owner::OwnerToken;
use crate::core::types::reason::Reason;
use crate::core::types::slot::Slot;

/// A message of a release: this lock is reserved for this waiter for a moment. It grants nothing: the waiter queries,
/// and the answer does.
///
/// See "Why does a message grant nothing?" in DESIGN.md.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct WakeUp {
    pub(crate) key: LockKey,
    pub(crate) owner: OwnerToken,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Revocation {
    pub(crate) verb: Verb,
    pub(crate) owner: String,
    pub(crate) key: LockKey,
    pub(crate) reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Revoke,
    Forced,
}

pub(crate) struct Danger<'a> {
    pub(crate) server: &'a str,
    pub(crate) code: &'a str,
    pub(crate) message: &'a str,
    pub(crate) advice: &'a str,
}

/// Receives what happens in a backend: one for each locker.
///
/// # Contract
/// - No method blocks: a connection's own task may call it, and its next answer waits meanwhile.
/// - A report is a hint: silence proves nothing, and a report may come late or twice, or from someone else.
/// - `concerns` is whether a report is about the locks of a slot. It is called within the method only.
pub(crate) trait Events: Send + Sync {
    fn on_wake_up(&self, wake_up: WakeUp);

    /// Wake-ups may have been missed: every line that waits for a lock of these slots queries.
    fn on_resubscribed(&self, _concerns: &dyn Fn(Slot) -> bool) {}

    /// A server refuses the subscription to wake-ups, which only an operator can mend; once for each server.
    fn on_unheard(&self, _fault: &Fault) {}

    /// At the first connection of the process to a server with a setting that endangers locks.
    fn on_endangered(&self, _danger: &Danger<'_>) {}

    /// A certificate ends soon, or has ended, which this sentence says.
    fn on_ending(&self, _certificate: &str) {}

    /// A connection or a subscription to the server of these slots broke: the last replies about their locks may be out
    /// of date.
    fn on_broken(&self, _fault: &Fault, _concerns: &dyn Fn(Slot) -> bool) {}

    /// The server of these slots may have been replaced, or have lost its data, since the other connections were
    /// opened.
    fn on_connected(&self, _concerns: &dyn Fn(Slot) -> bool) {}

    fn on_changed(&self, _key: &str) {}

    fn on_flushed(&self, _concerns: &dyn Fn(Slot) -> bool) {}

    /// Changes of these slots' locks are not reported any more, until their leases are checked again.
    fn on_untracked(&self, _concerns: &dyn Fn(Slot) -> bool) {}

    fn on_revocation(&self, _revocation: &Revocation) {}
}
