//! The rules of tickets: at most one worker redeems one, under its fencing token, while it is valid.

use super::keys::{KEYS, known};
use super::slot_owners::Topology;
use super::tickets::is_ticket;
use super::world::World;
use crate::core::backend::Attempt;
use crate::core::lease::Lease;
use crate::core::types::key::LockKey;
use crate::core::types::ticket::Ticket;

impl World {
    /// To a ticket, or to the one who redeems it.
    pub(super) fn transferred(&self, server: usize, from: &Attempt, to: &Attempt) {
        let (key, ttl) = (known(&to.key), to.ttl.duration());
        let [from, to] = [from, to].map(|attempt| attempt.owner.as_ref());
        self.confirms(server, to);
        self.rules().transferred(key, from, to);
        self.tickets().transferred(key, from, (to, ttl), self.is_left(server));
    }

    /// A server gives this lock to an owner, which no ticket may have.
    pub(super) fn takes(&self, server: usize, key: &LockKey, owner: &str) {
        let (key, is_left) = (known(key), self.is_left(server));
        let valid = self.tickets().valid_of(key);
        if valid.iter().any(|ticket| !is_left && !self.rules().is_lost(ticket)) {
            self.violation(|names| format!("{key}: granted to {} from a ticket", names.of(owner)));
        }
    }

    pub(super) fn redeemed(&self, ticket: &Ticket, lease: &Lease) {
        self.count("tickets redeemed");
        let owner = lease.attempt().owner.as_ref();
        let is_lost = self.rules().is_lost(ticket.owner().as_ref());
        let former = self.tickets().redeemed(ticket, owner).filter(|_| !is_lost);
        if former.is_some_and(|former| !self.rules().is_lost(&former)) {
            self.violation(|names| format!("{}: a ticket was redeemed twice", names.of(owner)));
        }
        if lease.fencing_token() != ticket.fencing_token() {
            self.violation(|names| format!("{}: not the token of its ticket", names.of(owner)));
        }
    }

    /// The lock is free or another holder's. A process may ask a primary that was left.
    pub(super) fn is_refused(&self, ticket: &Ticket) {
        self.count("tickets refused");
        let is_known = self.mix.topology != Topology::Failover;
        let is_lost = self.rules().is_lost(ticket.owner().as_ref());
        if is_known && !is_lost && self.tickets().is_valid(ticket) {
            let owner = ticket.owner();
            self.violation(|names| format!("{}: the ticket is refused", names.of(owner.as_ref())));
        }
    }

    pub(super) fn look_for_old_tickets(&self) {
        for key in KEYS {
            let owner = self.owner(key).filter(|owner| is_ticket(owner));
            if let Some(owner) = owner.filter(|owner| self.tickets().is_over(owner)) {
                self.violation(|names| format!("{key}: {} is over", names.of(&owner)));
            }
        }
    }
}
