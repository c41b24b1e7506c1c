//! The stakes of one locker: who asks for each lock, waits for it, and holds it.
//!
//! See "When is a call busy without a request to Redis?" in DESIGN.md.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::line::Behind;
use super::table::{At, Held, Left, Role, Stakes, Table, Way};
use crate::backend::Link;
use crate::lease::Lease;
use crate::lease::renewal::Renewals;
use crate::lease::schedule::Cause;
use crate::types::clock::Moment;
use crate::types::key::LockKey;
use crate::types::line_key::LineKey;
use crate::types::options::Wait;
use crate::types::slot::Slot;

pub(super) struct Holders {
    link: Arc<Link>,
    table: Table,
    renewals: Renewals,
}

impl Holders {
    pub(super) fn new(link: &Arc<Link>) -> Self {
        let renewals = Renewals::new(Arc::clone(link));
        Self { link: Arc::clone(link), table: Table::default(), renewals }
    }

    /// A call comes, which waits as it says.
    pub(super) fn enter(&self, key: &LockKey, wait: Wait, now: Moment) -> (Way, At) {
        self.table.enter(key, wait, now)
    }

    /// A stake becomes another one.
    pub(super) fn at(&self, line: &LineKey) -> At {
        self.table.at(line)
    }

    pub(super) fn change(&self, at: At, from: Role, begin: impl FnOnce(&mut Stakes)) -> Left {
        self.table.change(at, |stakes| {
            let left = stakes.leave(from, at.number);
            begin(stakes);
            left
        })
    }

    /// What a call holds from now on: this lease, which is due then where it is renewed.
    pub(super) fn held(&self, at: At, lease: &Lease, due: Option<(Moment, Handle)>) -> Held {
        let schedule = due.map(|(due, home)| self.renewals.schedule(lease, due, &home));
        Held { number: at.number, lease: lease.clone(), schedule }
    }

    /// Renews the lease of this call no more.
    pub(super) fn unschedule(&self, at: At) {
        drop(self.table.change(at, |stakes| stakes.detach(at.number)));
    }

    /// What the first call of a line waits behind.
    pub(super) fn behind(&self, at: At, line: &LineKey, now: Moment) -> Behind {
        let is_try = self.table.change(at, |stakes| stakes.awaits_try(line, now));
        if is_try { Behind::Try(self.link.command_deadline) } else { Behind::Holder }
    }

    /// How many calls ask for this lock now.
    #[cfg(test)]
    pub(super) fn asking(&self, key: &LockKey) -> usize {
        self.table.asking(key)
    }

    /// The leases of this lock that are held, or whose loss was not found yet.
    pub(super) fn leases(&self, key: &LockKey) -> Vec<Lease> {
        self.table.leases(key)
    }

    /// Others may have changed the lock of this key: looks at its leases. Nothing happens where none is held.
    pub(super) fn look(&self, key: &str) {
        for look in self.table.lookers(key, self.link.backend.now()) {
            look();
        }
    }

    /// Looks at the watched leases of these slots, so that what happens to their locks is heard of again.
    pub(super) fn look_again(&self, concerns: &dyn Fn(Slot) -> bool) {
        self.renewals.look_again(&self.link.backend.home(false), concerns);
    }

    /// Checks every lease of these slots at once, because their server may have lost it.
    pub(super) fn check_all(&self, concerns: &dyn Fn(Slot) -> bool, cause: Cause) {
        let mut leases = self.table.all();
        leases.retain(|(_, lease, _)| concerns(lease.attempt().slot));
        if leases.is_empty() {
            return;
        }
        let home = self.link.backend.home(false);
        let due = self.renewals.check_all(&home, concerns, cause);
        leases.retain(|(_, _, is_scheduled)| !is_scheduled);
        // The table has no order. A check has one, so that a simulation can repeat it.
        leases.sort_unstable_by(|(at, one, _), (other_at, other, _)| {
            one.key().cmp(other.key()).then(at.number.cmp(&other_at.number))
        });
        for (at, lease, _) in leases {
            let schedule = self.renewals.schedule(&lease, due, &home);
            // If its release has begun meanwhile, it is taken off the agenda again here.
            drop(self.table.change(at, |stakes| stakes.attach(at.number, schedule)));
        }
    }
}
