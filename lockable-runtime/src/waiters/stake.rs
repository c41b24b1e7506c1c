//! What one call is to a lock: it asks for it, waits for it, or holds it.

use std::mem;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::lines::Lines;
use super::table::{At, Role, Slot};
use crate::lease::Lease;
use crate::types::clock::Moment;

/// What one call is to a lock, until this is dropped.
///
/// A guard may outlive its locker; this keeps what checks and renews its lease.
pub(crate) struct Stake {
    lines: Arc<Lines>,
    at: At,
    role: Role,
}

/// What a call does that comes.
pub(crate) enum Entered {
    /// It asks for the lock.
    Asks(Stake),
    /// It waits behind other calls of its locker.
    Joins(Stake),
    /// It finds the lock busy, and asks nothing: the backend has just confirmed that this locker holds it.
    IsBusy,
}

impl Stake {
    pub(super) fn new(lines: &Arc<Lines>, at: At, role: Role) -> Self {
        Self { lines: Arc::clone(lines), at, role }
    }

    /// Its place in the order of arrival of all calls for this lock.
    pub(crate) fn number(&self) -> u64 {
        self.at.number
    }

    /// The call waits from now on.
    pub(crate) fn waits(&mut self) {
        self.change(Role::Waits, |slot| slot.waiting += 1);
    }

    /// The call asks from now on.
    pub(crate) fn asks(&mut self) {
        self.change(Role::Asks, |slot| slot.asking += 1);
    }

    /// The call holds the lock from now on, with this lease, which is due then where it is renewed.
    pub(crate) fn holds(&mut self, lease: &Lease, due: Option<(Moment, Handle)>) {
        let from = mem::replace(&mut self.role, Role::Holds);
        self.lines.holders.hold(self.at, from, lease, due);
    }

    /// Takes the stake out of this.
    pub(crate) fn take(&mut self) -> Self {
        let role = mem::replace(&mut self.role, Role::IsOver);
        Self::new(&self.lines, self.at, role)
    }

    fn change(&mut self, role: Role, begin: impl FnOnce(&mut Slot)) {
        let from = mem::replace(&mut self.role, role);
        self.lines.holders.change(self.at, from, begin);
    }
}

impl Drop for Stake {
    fn drop(&mut self) {
        // A guard that is dropped in a forked child keeps its stake; a call may be dropped there as well.
        let is_own = self.role == Role::Holds || !self.lines.link.is_inherited();
        if self.role != Role::IsOver && is_own {
            self.change(Role::IsOver, |_| {});
        }
    }
}
