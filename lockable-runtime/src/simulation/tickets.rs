//! The tickets of one seed: the place where workers leave them for others, and what each promises.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::dice::Dice;
use super::history::TICKET;
use crate::core::process::clock::{Moment, tokio_time};
use crate::core::types::ticket::Ticket;

/// So many are there at most. Those that came first may be redeemed, or over.
const OFFERED: usize = 6;

#[derive(Default)]
pub(super) struct Tickets {
    offered: VecDeque<Ticket>,
    /// By the owner tokens of their locks.
    issued: BTreeMap<String, Issued>,
}

struct Issued {
    key: &'static str,
    /// When its lock is free at the latest.
    ends: Moment,
    /// Whether a worker has it.
    is_made: bool,
    /// Whether a request has taken its lock over.
    is_used: bool,
    /// Who has redeemed it, by the owner token.
    redeemed_by: Option<String>,
}

/// Whether this is the owner token of a ticket.
pub(super) fn is_ticket(owner: &str) -> bool {
    owner.starts_with(TICKET)
}

impl Tickets {
    /// A server gave a lock from one owner token to another.
    pub(super) fn transferred(&mut self, key: &'static str, from: &str, to: (&str, Duration)) {
        if let Some(issued) = self.issued.get_mut(from) {
            issued.is_used = true;
        }
        let (owner, ttl) = to;
        if is_ticket(owner) {
            let ends = tokio_time().after(ttl);
            let (is_made, is_used, redeemed_by) = (false, false, None);
            let new = Issued { key, ends, is_made, is_used, redeemed_by };
            let issued = self.issued.entry(owner.to_owned()).or_insert(new);
            issued.ends = ends.max(issued.ends);
        }
    }

    /// A worker has made it, and leaves it here.
    pub(super) fn offer(&mut self, ticket: Ticket) {
        if let Some(issued) = self.issued.get_mut(ticket.owner().as_ref()) {
            issued.is_made = true;
        }
        self.offered.push_back(ticket);
        if self.offered.len() > OFFERED {
            drop(self.offered.pop_front());
        }
    }

    /// One of them, which may be left here as well.
    pub(super) fn take(&mut self, dice: &mut Dice) -> Option<Ticket> {
        let at = usize::try_from(dice.below(self.offered.len() as u64)).unwrap();
        let stays = dice.chance(400);
        if stays { self.offered.get(at).cloned() } else { self.offered.remove(at) }
    }

    /// This owner has redeemed it; returns the one who has done so before.
    pub(super) fn redeemed(&mut self, ticket: &Ticket, owner: &str) -> Option<String> {
        let issued = self.issued.get_mut(ticket.owner().as_ref())?;
        issued.redeemed_by.replace(owner.to_owned())
    }

    /// Whether its lock can be redeemed, unless a server has lost it.
    pub(super) fn is_valid(&self, ticket: &Ticket) -> bool {
        self.issued.get(ticket.owner().as_ref()).is_some_and(Issued::is_valid)
    }

    /// Whether a request has taken over the lock of the ticket with this owner token.
    pub(super) fn is_used(&self, owner: &str) -> bool {
        self.issued.get(owner).is_some_and(|issued| issued.is_used)
    }

    /// The tickets that have this lock, by their owner tokens, unless a server has lost it.
    pub(super) fn valid_of(&self, key: &str) -> Vec<String> {
        let valid = self.issued.iter().filter(|(_, issued)| issued.key == key && issued.is_valid());
        valid.map(|(owner, _)| owner.clone()).collect()
    }

    /// Whether the time of the ticket with this owner token is over.
    pub(super) fn is_over(&self, owner: &str) -> bool {
        self.issued.get(owner).is_none_or(|issued| issued.ends <= tokio_time())
    }
}

impl Issued {
    fn is_valid(&self) -> bool {
        self.is_made && !self.is_used && tokio_time() < self.ends
    }
}
