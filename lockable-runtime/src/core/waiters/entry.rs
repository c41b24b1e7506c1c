use std::mem;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::line::{Behind, LastReply};
use super::lines::Lines;
use super::table::{Entries, EntryId, EntryRole, HeldEntry, Left};
use crate::core::lease::Lease;
use crate::core::process::clock::Moment;
use crate::core::types::key::LockKey;
use crate::core::types::line_key::LineKey;

/// The entry of one call in the locker's table: the call tries, waits for or holds the lock until this is dropped.
///
/// A guard may outlive its locker; this keeps what checks and renews its lease.
pub(crate) struct Entry {
    lines: Arc<Lines>,
    at: EntryId,
    role: EntryRole,
}

impl Entry {
    pub(super) fn new(lines: &Arc<Lines>, at: EntryId, role: EntryRole) -> Self {
        Self { lines: Arc::clone(lines), at, role }
    }

    /// Counts up in the order of arrival of all calls for this lock.
    pub(super) fn number(&self) -> u64 {
        self.at.number
    }

    pub(super) fn behind(&self, line: &LineKey, now: Moment) -> Behind {
        let is_try = self.lines.table.change(self.at, |entries| entries.awaits_try(line, now));
        if is_try { Behind::Try(self.lines.context.command_deadline) } else { Behind::Holder }
    }

    pub(crate) fn tries(&mut self) {
        self.change(EntryRole::Tries, LastReply::Nothing, |entries| entries.trying += 1);
    }

    pub(crate) fn waits(&mut self) {
        self.change(EntryRole::Waits, LastReply::Busy, |entries| entries.waiting += 1);
    }

    pub(crate) fn ends(mut self, last_reply: LastReply) {
        self.change(EntryRole::IsOver, last_reply, |_| {});
    }

    /// The call holds the lock from now on, with this lease, which is due then if it is renewed.
    pub(crate) fn holds(&mut self, lease: &Lease, due: Option<(Moment, Handle)>) {
        let schedule = due.map(|(due, renewal_runtime)| {
            self.lines.renewals.schedule(lease, due, &renewal_runtime)
        });
        let held = HeldEntry { number: self.at.number, lease: lease.clone(), schedule };
        self.change(EntryRole::Holds, LastReply::Busy, |entries| entries.push(held));
    }

    /// Moves the entry from the local permit to the permit itself, which is known by now.
    pub(crate) fn moves(&mut self, permit: &LockKey) {
        self.change(EntryRole::IsOver, LastReply::Busy, |_| {});
        self.at = self.lines.table.new_id(&LineKey::Lock(permit.clone()));
    }

    pub(crate) fn unschedule(&self) {
        drop(self.lines.table.change(self.at, |entries| entries.detach(self.at.number)));
    }

    pub(crate) fn take(&mut self) -> Self {
        let role = mem::replace(&mut self.role, EntryRole::IsOver);
        Self::new(&self.lines, self.at, role)
    }

    fn change(&mut self, role: EntryRole, last_reply: LastReply, begin: impl FnOnce(&mut Entries)) {
        let from = mem::replace(&mut self.role, role);
        let Left { held, awaited } = self.lines.table.change(self.at, |entries| {
            let left = entries.leave(from, self.at.number);
            begin(entries);
            left
        });
        drop(held);
        if let Some(line) = awaited {
            self.lines.on(&line, |line, now| line.tried(last_reply, now));
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // A guard that is dropped in a forked child keeps its entry; a call may be dropped there as well.
        let is_own = self.role == EntryRole::Holds || !self.lines.context.is_inherited();
        if self.role != EntryRole::IsOver && is_own {
            self.change(EntryRole::IsOver, LastReply::Nothing, |_| {});
        }
    }
}
