//! The tickets of one seed: workers leave them here for others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::dice::Dice;
use super::history::TICKET;
use crate::core::process::clock::{Moment, tokio_time};
use crate::core::types::ticket::Ticket;

/// How many are offered at most.
const OFFERED: usize = 6;

#[derive(Default)]
pub(super) struct Tickets {
    offered: VecDeque<Ticket>,
    /// By owner token.
    issued: BTreeMap<String, Issued>,
}

struct Issued {
    key: &'static str,
    /// When its lock is free, at the latest.
    ends: Moment,
    /// Whether a worker has it.
    is_made: bool,
    /// Whether a request has taken its lock over.
    is_used: bool,
    /// The owners that took its lock over, except at a primary that was left.
    taken_over_by: BTreeSet<String>,
    redeemed_by: Option<String>,
}

pub(super) fn is_ticket(owner: &str) -> bool {
    owner.starts_with(TICKET)
}

impl Tickets {
    pub(super) fn transferred(
        &mut self,
        key: &'static str,
        from: &str,
        to: (&str, Duration),
        is_left: bool,
    ) {
        let (owner, ttl) = to;
        if let Some(issued) = self.issued.get_mut(from) {
            issued.is_used = true;
            if !is_left {
                issued.taken_over_by.insert(owner.to_owned());
            }
        }
        if is_ticket(owner) {
            let ends = tokio_time().after(ttl);
            let new = Issued {
                key,
                ends,
                is_made: false,
                is_used: false,
                taken_over_by: BTreeSet::new(),
                redeemed_by: None,
            };
            let issued = self.issued.entry(owner.to_owned()).or_insert(new);
            issued.ends = ends.max(issued.ends);
        }
    }

    pub(super) fn offer(&mut self, ticket: Ticket) {
        if let Some(issued) = self.issued.get_mut(ticket.owner().as_ref()) {
            issued.is_made = true;
        }
        self.offered.push_back(ticket);
        if self.offered.len() > OFFERED {
            drop(self.offered.pop_front());
        }
    }

    /// Takes one, or a copy of it.
    pub(super) fn take(&mut self, dice: &mut Dice) -> Option<Ticket> {
        let at = usize::try_from(dice.below(self.offered.len() as u64)).unwrap();
        let stays = dice.chance(400);
        if stays { self.offered.get(at).cloned() } else { self.offered.remove(at) }
    }

    /// Returns the owner who redeemed it before. A redemption at a primary that was left does not count.
    pub(super) fn redeemed(&mut self, ticket: &Ticket, owner: &str) -> Option<String> {
        let issued = self.issued.get_mut(ticket.owner().as_ref())?;
        if !issued.taken_over_by.contains(owner) {
            return None;
        }
        issued.redeemed_by.replace(owner.to_owned())
    }

    /// Whether its lock can be redeemed, unless a server has lost it.
    pub(super) fn is_valid(&self, ticket: &Ticket) -> bool {
        self.issued.get(ticket.owner().as_ref()).is_some_and(Issued::is_valid)
    }

    /// Whether its lock was taken over.
    pub(super) fn is_used(&self, owner: &str) -> bool {
        self.issued.get(owner).is_some_and(|issued| issued.is_used)
    }

    /// The owner tokens of tickets that have this lock, unless a server has lost it.
    pub(super) fn valid_of(&self, key: &str) -> Vec<String> {
        let valid = self.issued.iter().filter(|(_, issued)| issued.key == key && issued.is_valid());
        valid.map(|(owner, _)| owner.clone()).collect()
    }

    pub(super) fn is_over(&self, owner: &str) -> bool {
        self.issued.get(owner).is_none_or(|issued| issued.ends <= tokio_time())
    }
}

impl Issued {
    fn is_valid(&self) -> bool {
        self.is_made && !self.is_used && tokio_time() < self.ends
    }
}
