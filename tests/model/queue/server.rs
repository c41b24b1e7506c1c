//! The server: a lock and its queue, and the scripts that change them. Each runs in one step.

use crate::queue::rules::{Rule, Rules};

/// An owner token: a process, and the number of its attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub(crate) process: u8,
    pub(crate) attempt: u8,
}

/// Says as well which of two grants is the newer one.
pub(crate) type Fence = u8;

/// How often a turn may be passed on. There are sixteen, of which one is enough here.
pub(crate) const PASSES: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Request {
    // `SET NX GET`.
    Try(Owner),
    // `enqueue.lua`.
    Enqueue(Owner),
    // `release.lua`, perhaps with an attempt to be queued.
    Release { owner: Owner, next: Option<Owner> },
    // `leave.lua`.
    Leave(Owner),
}

impl Request {
    pub(crate) fn owner(self) -> Owner {
        match self {
            Self::Try(owner)
            | Self::Enqueue(owner)
            | Self::Release { owner, .. }
            | Self::Leave(owner) => owner,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Answer {
    // The lock is the attempt's, or that of the next attempt.
    Granted(Fence),
    // Another has the lock; the attempt is queued if it has asked for that.
    Busy,
    Released,
    // A release has found no lock of its own.
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lock {
    pub(crate) owner: Owner,
    /// Whether it is kept for a waiter, for a moment only, and no request of that waiter has found it.
    pub(crate) is_kept: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    pub(crate) lock: Option<Lock>,
    pub(crate) queue: Vec<Owner>,
    pub(crate) fence: Fence,
    /// The processes that listen, as bits.
    listening: u8,
    pub(crate) rules: Rules,
    /// Whether a lock was given to an attempt while a process that listens waited in front of it.
    pub(crate) was_unfair: bool,
    /// The same of a try.
    pub(crate) was_overtaken: bool,
    /// Whether a lock was handed off to a process that does not listen.
    pub(crate) was_unheard: bool,
}

impl Server {
    pub(crate) fn new(rules: Rules) -> Self {
        Self { listening: u8::MAX, rules, ..Self::default() }
    }

    pub(crate) fn has(&self, owner: Owner) -> bool {
        self.lock.is_some_and(|lock| lock.owner == owner)
    }

    /// Whether a process is alive, which is the same here.
    pub(crate) fn listens(&self, process: u8) -> bool {
        (self.listening >> process) & 1 == 1
    }

    pub(crate) fn kill(&mut self, process: u8) {
        self.listening &= !(1 << process);
    }

    /// Runs a request. It may have a waiter woken, besides the answer.
    pub(crate) fn run(&mut self, request: Request) -> (Answer, Option<Owner>) {
        match request {
            Request::Try(owner) => (self.set(owner), None),
            Request::Enqueue(owner) => self.enqueue(owner),
            Request::Release { owner, next } => self.release(owner, next),
            Request::Leave(owner) => self.leave(owner),
        }
    }

    fn set(&mut self, owner: Owner) -> Answer {
        if self.lock.is_none() {
            self.was_overtaken |= self.queue.iter().any(|other| self.listens(other.process));
            return self.take(owner);
        }
        if self.has(owner) { Answer::Granted(self.reserve()) } else { Answer::Busy }
    }

    fn enqueue(&mut self, owner: Owner) -> (Answer, Option<Owner>) {
        let mut woken = None;
        if self.lock.is_none() && self.rules.has(Rule::FreeLockIsTheHeads) {
            woken = self.hand_off(Some(owner));
        } else if self.lock.is_none() {
            self.was_unfair |= self.waits_before(owner);
        }
        if self.lock.is_none() {
            self.queue.retain(|other| *other != owner);
            return (self.take(owner), None);
        }
        if self.has(owner) && self.rules.has(Rule::OwnLockIsFound) {
            return (self.lengthen(Rule::QueryLengthens), None);
        }
        self.join(owner);
        (Answer::Busy, woken)
    }

    fn release(&mut self, owner: Owner, next: Option<Owner>) -> (Answer, Option<Owner>) {
        let ends = self.has(owner) || !self.rules.has(Rule::ReleaseCompares);
        if let Some(next) = next {
            if self.has(next) {
                return (self.lengthen(Rule::ReleaseLengthens), None);
            }
            if ends && !self.rules.has(Rule::NextIsBehind) {
                self.was_unfair |= self.waits_before(next);
                return (self.take(next), None);
            }
            self.join(next);
        }
        if !ends {
            return (Answer::Gone, None);
        }
        let woken = self.hand_off(next);
        match next {
            Some(next) if self.lock.is_none() => (self.take(next), None),
            _ => (Answer::Released, woken),
        }
    }

    fn leave(&mut self, owner: Owner) -> (Answer, Option<Owner>) {
        self.queue.retain(|other| *other != owner);
        if !self.has(owner) || !self.rules.has(Rule::LeaveEndsHold) {
            return (Answer::Gone, None);
        }
        (Answer::Released, self.hand_off(None))
    }

    /// `hand_off.lua`: keeps the lock for the first waiter that a wake-up reaches. The lock is free where that is the
    /// attempt which asks, or none.
    fn hand_off(&mut self, asks: Option<Owner>) -> Option<Owner> {
        self.lock = None;
        while !self.queue.is_empty() {
            let is_first = self.rules.has(Rule::HeadIsFirst);
            let place = if is_first { 0 } else { self.queue.len() - 1 };
            let owner = self.queue[place];
            let is_own = asks == Some(owner);
            let is_heard = is_own || self.listens(owner.process);
            let is_granted = is_heard || !self.rules.has(Rule::HandOffIsHeard);
            self.was_unfair |= is_granted && self.waits_before(owner);
            if !is_granted || self.rules.has(Rule::HandOffTakesOut) {
                self.queue.remove(place);
            }
            if is_own {
                return None;
            }
            if is_granted {
                self.was_unheard |= !is_heard;
                self.lock = Some(Lock { owner, is_kept: true });
                return Some(owner);
            }
        }
        None
    }

    fn take(&mut self, owner: Owner) -> Answer {
        self.lock = Some(Lock { owner, is_kept: false });
        Answer::Granted(self.reserve())
    }

    /// The lock is that of the attempt which asks: it lasts for the whole lease from now on.
    fn lengthen(&mut self, rule: Rule) -> Answer {
        let lengthens = self.rules.has(rule);
        self.lock.iter_mut().for_each(|lock| lock.is_kept &= !lengthens);
        let reserves = self.rules.has(Rule::KeptTurnReserves);
        Answer::Granted(if reserves { self.reserve() } else { self.fence })
    }

    fn join(&mut self, owner: Owner) {
        if !self.queue.contains(&owner) || !self.rules.has(Rule::JoinsOnce) {
            self.queue.push(owner);
        }
    }

    fn reserve(&mut self) -> Fence {
        let first = self.fence + 1;
        self.fence = if self.rules.has(Rule::ReservesPasses) { first + PASSES } else { first };
        first
    }

    /// Whether a process that listens waits in front of the attempt, or waits where that does not.
    fn waits_before(&self, owner: Owner) -> bool {
        let mut before = self.queue.iter().take_while(|other| **other != owner);
        before.any(|other| self.listens(other.process))
    }
}
