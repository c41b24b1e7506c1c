//! The fencing tokens of one key's holders, in the order in which the server granted them the lock.

use crate::counters::server::Time;

/// The tokens of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tokens {
    pub(crate) first: Time,
    pub(crate) last: Time,
    /// The highest count that the connection had seen, if it trusted that.
    pub(crate) seen: Option<Time>,
    /// Whether the lock was lost between the two parts of the request.
    pub(crate) came_apart: bool,
}

/// The lock, as it was granted to a call, and its tokens once that has an answer in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Grant {
    call: usize,
    tokens: Option<Tokens>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct History(Vec<Grant>);

impl History {
    pub(crate) fn grant(&mut self, call: usize) {
        self.refuse(call);
        self.0.push(Grant { call, tokens: None });
    }

    /// The call does not hold the lock, whatever it was granted.
    pub(crate) fn refuse(&mut self, call: usize) {
        self.0.retain(|grant| grant.call != call || grant.tokens.is_some());
    }

    /// The call holds the lock, unless it was refused before.
    pub(crate) fn hold(&mut self, call: usize, tokens: Tokens) {
        let is_open = |grant: &&mut Grant| grant.call == call && grant.tokens.is_none();
        if let Some(grant) = self.0.iter_mut().find(is_open) {
            grant.tokens = Some(tokens);
        }
    }

    /// Each holder with each later one whose tokens are not all above its own.
    pub(crate) fn setbacks(&self) -> impl Iterator<Item = (Tokens, Tokens)> {
        let held = self.0.iter().filter_map(|grant| grant.tokens);
        let pairs = held.clone().enumerate().flat_map(move |(at, former)| {
            held.clone().skip(at + 1).map(move |later| (former, later))
        });
        pairs.filter(|(former, later)| later.first <= former.last)
    }
}
