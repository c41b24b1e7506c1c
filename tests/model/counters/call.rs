//! The client: what a connection remembers, and how a call acquires, step by step.

use crate::counters::history::{History, Tokens};
use crate::counters::rules::{Rule, Rules};
use crate::counters::server::{Owner, Server, Time};

/// What a connection knows of the counter, if it has seeded that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Memory {
    /// The highest count.
    seen: Time,
    /// The longest TTL that it has seeded the counter with.
    life: Time,
}

/// A call that acquires a lock, again and again. Each attempt begins with a request of two parts: `SET`, and a
/// count by `INCR` or by the seeding script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) number: usize,
    pub(crate) connection: usize,
    pub(crate) key: usize,
    /// The TTL that its leases need.
    pub(crate) life: Time,
    pub(crate) attempts: u8,
    pub(crate) step: Step,
    /// Whether the attempt has the lock, as far as the server has looked.
    is_granted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Idle,
    // `SET` has run. The count is `INCR` if the connection had seen a count that it trusts.
    Locked { seen: Option<Time> },
    // The count has run as well, after the lock was lost if the parts came apart.
    Counted { seen: Option<Time>, count: Count, came_apart: bool },
    // The counter was lost: a second request of two parts will seed it, and look at the lock.
    Lost,
    Seeded { count: Count },
    Looked { count: Count },
    // The connection broke, and the attempt will be sent again.
    Broken,
}

/// What a count returns: a token, and the time that a seed has raised the neighbour to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Count {
    token: Time,
    neighbour: Time,
}

impl Call {
    pub(crate) const fn new(number: usize, connection: usize, key: usize, life: Time) -> Self {
        Self { number, connection, key, life, attempts: 0, step: Step::Idle, is_granted: false }
    }

    pub(crate) fn owner(&self) -> Owner {
        (self.number, self.attempts)
    }

    /// Whether what comes next is an answer.
    pub(crate) fn is_answered(&self) -> bool {
        matches!(self.step, Step::Counted { .. } | Step::Looked { .. })
    }

    /// Whether it will seed the counter.
    pub(crate) fn will_seed(&self) -> bool {
        match self.step {
            Step::Counted { seen, count, .. } => seen.is_some_and(|seen| count.token <= seen),
            Step::Locked { seen } => seen.is_none(),
            step => matches!(step, Step::Lost | Step::Broken),
        }
    }

    /// Sends the first request, whose first part runs.
    pub(crate) fn send(
        &mut self,
        memory: Option<Memory>,
        server: &mut Server,
        history: &mut History,
    ) {
        let is_enough =
            |memory: &Memory| memory.life >= self.life || !server.rules.has(Rule::LongerLeaseSeeds);
        let seen = memory.filter(is_enough).map(|memory| memory.seen);
        self.is_granted = server.set(self.key, self.owner());
        if self.is_granted {
            history.grant(self.number);
        }
        self.step = Step::Locked { seen };
    }

    /// The next part of the request under way runs.
    pub(crate) fn run(&mut self, server: &mut Server) {
        let has_lock = server.has_lock(self.key, self.owner());
        self.step = match self.step {
            Step::Locked { seen } => {
                let count = if seen.is_some() { self.count(server) } else { self.seed(server) };
                Step::Counted { seen, count, came_apart: self.is_granted && !has_lock }
            }
            Step::Lost => Step::Seeded { count: self.seed(server) },
            Step::Seeded { count } => {
                self.is_granted &= has_lock || !server.rules.has(Rule::SecondRequestLooks);
                server.pass(1);
                Step::Looked { count }
            }
            step => step,
        };
    }

    fn count(&self, server: &mut Server) -> Count {
        Count { token: server.count(self.key), neighbour: 0 }
    }

    fn seed(&self, server: &mut Server) -> Count {
        let (token, time) = server.seed(self.key, self.life);
        if !server.rules.has(Rule::NeighbourIsCompared) {
            return Count { token, neighbour: 0 };
        }
        let is_time = server.rules.has(Rule::NeighbourIsComparedWithTime);
        Count { token, neighbour: if is_time { time } else { token } }
    }

    /// The answer to the request arrives.
    pub(crate) fn answer(
        &mut self,
        memories: &mut [Option<Memory>; 2],
        server: &Server,
        history: &mut History,
    ) {
        let (seen, count, came_apart) = match self.step {
            Step::Counted { seen, count, came_apart } => (seen, count, came_apart),
            Step::Looked { count } => (None, count, false),
            _ => return,
        };
        let (slot, token) = (server.slots[self.key], count.token);
        if is_lost(seen, token, memories[slot], server.rules) {
            *memories = [None; 2];
            self.step = Step::Lost;
            return;
        }
        let has_seeded = seen.is_none();
        self.remember(&mut memories[slot], has_seeded, token);
        if has_seeded && server.slots[0] != server.slots[1] {
            self.remember(&mut memories[1 - slot], has_seeded, count.neighbour);
        }
        if self.is_granted {
            history.hold(self.number, Tokens { first: token, last: token, seen, came_apart });
        } else {
            history.refuse(self.number);
        }
        self.finish();
    }

    fn remember(&self, memory: &mut Option<Memory>, has_seeded: bool, seen: Time) {
        if has_seeded {
            let memory = memory.get_or_insert(Memory { seen, life: self.life });
            memory.life = memory.life.max(self.life);
        }
        if let Some(memory) = memory {
            memory.seen = memory.seen.max(seen);
        }
    }

    pub(crate) fn finish(&mut self) {
        *self = Self { attempts: self.attempts + 1, step: Step::Idle, is_granted: false, ..*self };
    }
}

/// Whether a count shows that the counter is not the one that the connection has seeded.
fn is_lost(seen: Option<Time>, count: Time, memory: Option<Memory>, rules: Rules) -> bool {
    let seen = match memory {
        Some(memory) if !rules.has(Rule::CountIsComparedAsSent) => seen.and(Some(memory.seen)),
        _ => seen,
    };
    rules.has(Rule::CountIsCompared) && seen.is_some_and(|seen| count <= seen)
}
