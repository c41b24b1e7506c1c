//! All that there is at one moment, and how one thing after the other changes it.

use crate::counters::call::{Call, Memory, Step};
use crate::counters::history::{History, Tokens};
use crate::counters::rules::Rule;
use crate::counters::server::{Data, ROUND_TRIP, Server, Time};
use crate::counters::world::{Budget, World};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) server: Server,
    /// What a replica has that receives no more.
    pub(crate) replica: Option<Data>,
    /// What each connection remembers of each counter.
    memories: [[Option<Memory>; 2]; 2],
    pub(crate) calls: [Call; 3],
    /// Of each key.
    pub(crate) histories: [History; 2],
    pub(crate) left: Budget,
    /// Whether anything was lost.
    pub(crate) has_lost: bool,
    /// Whether a second request was sent before that.
    pub(crate) was_needless: bool,
}

impl State {
    pub(crate) fn new(world: &World) -> Self {
        let World { rules, slots, lives, budget, .. } = *world;
        let call = |number: usize| {
            let (connection, key) = CALLS[number];
            Call::new(number, connection, key, lives[key])
        };
        Self {
            server: Server { data: Data::default(), clock: START, rules, slots },
            replica: None,
            memories: [[None; 2]; 2],
            calls: [0, 1, 2].map(call),
            histories: [History::default(), History::default()],
            left: budget,
            has_lost: false,
            was_needless: false,
        }
    }

    /// The calls whose request is under way, or is sent again.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.step != Step::Idle)
    }

    /// By how much the server's clock was set back.
    pub(crate) fn set_back(&self, world: &World) -> Time {
        Time::from(world.budget.clock_steps - self.left.clock_steps) * CLOCK_STEP
    }

    pub(crate) fn send(&mut self, call: usize, ends_hold: bool) {
        let key = self.calls[call].key;
        if self.calls[call].step == Step::Idle {
            self.left.tries -= 1;
        }
        if ends_hold {
            self.end_hold(key);
        }
        let call = &mut self.calls[call];
        let memory = self.memories[call.connection][self.server.slots[key]];
        call.send(memory, &mut self.server, &mut self.histories[key]);
    }

    pub(crate) fn answer(&mut self, call: usize) {
        let call = &mut self.calls[call];
        let memories = &mut self.memories[call.connection];
        call.answer(memories, &self.server, &mut self.histories[call.key]);
        self.was_needless |= call.step == Step::Lost && !self.has_lost;
    }

    pub(crate) fn hand_off(&mut self, call: usize, gone: u8) {
        self.left.hand_offs -= 1;
        self.end_hold(self.calls[call].key);
        let call = &mut self.calls[call];
        let (first, last) = self.server.grant(call.key, call.owner(), call.life, gone);
        let history = &mut self.histories[call.key];
        history.grant(call.number);
        history.hold(call.number, Tokens { first, last, seen: None, came_apart: false });
        call.finish();
    }

    /// The holder has released the lock, or its lease is over. An answer that is still under way is late then.
    fn end_hold(&mut self, key: usize) {
        let Some(owner) = self.server.data.locks[key].take() else { return };
        if self.calls[owner.0].owner() == owner {
            self.histories[key].refuse(owner.0);
        }
        self.server.pass(ROUND_TRIP);
    }

    pub(crate) fn reconnect(&mut self, connection: usize) {
        self.left.reconnections -= 1;
        self.break_connection(connection);
    }

    fn break_connection(&mut self, connection: usize) {
        if self.server.rules.has(Rule::NewConnectionForgets) {
            self.memories[connection] = [None; 2];
        }
        let calls = self.calls.iter_mut().filter(|call| call.connection == connection);
        calls.filter(|call| call.step != Step::Idle).for_each(|call| call.step = Step::Broken);
    }

    pub(crate) fn give_up(&mut self, call: usize) {
        self.left.given_up -= 1;
        self.histories[self.calls[call].key].refuse(call);
        self.calls[call].finish();
    }

    pub(crate) fn count_late(&mut self, key: usize) {
        self.left.given_up -= 1;
        self.server.count(key);
    }

    pub(crate) fn flush(&mut self) {
        self.left.flushes -= 1;
        self.lose(Data::default());
    }

    pub(crate) fn delete(&mut self, slot: usize) {
        self.left.deletions -= 1;
        let mut data = self.server.data.clone();
        data.counters[slot] = None;
        self.lose(data);
    }

    pub(crate) fn fail_over(&mut self, is_proxied: bool) {
        self.left.failovers -= 1;
        let data = self.replica.take().unwrap_or_default();
        self.lose(data);
        if !is_proxied {
            self.break_connection(0);
            self.break_connection(1);
        }
    }

    fn lose(&mut self, data: Data) {
        self.has_lost = true;
        self.server.data = data;
        self.server.pass(ROUND_TRIP);
    }

    pub(crate) fn sleep(&mut self) {
        self.left.sleeps -= 1;
        self.server.pass(SLEEP);
        if self.server.rules.has(Rule::MemoryEndsFirst) {
            self.memories = [[None; 2]; 2];
        }
    }

    pub(crate) fn set_clock_back(&mut self) {
        self.left.clock_steps -= 1;
        self.server.clock -= CLOCK_STEP;
    }
}

/// The connection and the key of each call: one process locks both keys, another the first.
const CALLS: [(usize, usize); 3] = [(0, 0), (0, 1), (1, 0)];

/// Far above what a counter that starts at 1 comes to.
const START: Time = 200;

/// Two of them outlast [`SHORT`], one does not.
const SLEEP: Time = 45;

/// More than two sleeps.
const CLOCK_STEP: Time = 100;

/// The TTL of a counter for a short lease.
pub(crate) const SHORT: Time = 60;

/// The TTL of a counter for a lease that outlasts all sleeps, and the step of the clock.
pub(crate) const LONG: Time = Time::MAX;
