//! The server: a clock, two locks, and their fence counters.

use crate::counters::rules::{Rule, Rules};

/// A moment of the server's clock. Fencing tokens are such moments, or small where `INCR` made the counter.
pub(crate) type Time = u16;

/// Which attempt has a lock: the number of its call, and how many attempts that call had made before.
pub(crate) type Owner = (usize, u8);

/// How many tokens a script reserves: seventeen there, few enough here to see what they do.
pub(crate) const RESERVATION: Time = 3;

/// How long the end of a hold takes at least, and a loss of data: a round trip, or the time until a server serves
/// again, is more than the microseconds of a reservation.
pub(crate) const ROUND_TRIP: Time = RESERVATION;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Counter {
    pub(crate) value: Time,
    /// When it expires; never, after `INCR` has made it.
    pub(crate) end: Option<Time>,
}

/// What a server can lose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Data {
    pub(crate) locks: [Option<Owner>; 2],
    pub(crate) counters: [Option<Counter>; 2],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    pub(crate) data: Data,
    /// When the next command runs at the earliest.
    pub(crate) clock: Time,
    pub(crate) rules: Rules,
    /// Which counter each lock has. Those of two slots are neighbours.
    pub(crate) slots: [usize; 2],
}

impl Server {
    /// `SET NX GET`: whether this attempt has the lock, now or since before.
    pub(crate) fn set(&mut self, key: usize, owner: Owner) -> bool {
        let found = *self.data.locks[key].get_or_insert(owner);
        self.pass(1);
        found == owner
    }

    pub(crate) fn has_lock(&self, key: usize, owner: Owner) -> bool {
        self.data.locks[key] == Some(owner)
    }

    /// `INCR`.
    pub(crate) fn count(&mut self, key: usize) -> Time {
        let Counter { value, end } = self.counter(self.slots[key]);
        let count = self.store(self.slots[key], value + 1, end);
        self.pass(1);
        count
    }

    /// `seed.lua`: the token, and the time that the neighbour of the counter has come to.
    pub(crate) fn seed(&mut self, key: usize, life: Time) -> (Time, Time) {
        let slot = self.slots[key];
        let Counter { value, end } = self.counter(slot);
        let now = if self.rules.has(Rule::SeedReadsTime) { self.clock } else { 1 };
        let raised = if self.rules.has(Rule::SeedNeverLowers) { now.max(value + 1) } else { now };
        let is_trusted = value > 0 && !self.rules.has(Rule::EachConnectionSeeds);
        let new_end = Some(self.new_end(end, life));
        let token = self.store(slot, if is_trusted { value + 1 } else { raised }, new_end);
        if self.slots[0] != self.slots[1] {
            self.seed_neighbour(1 - slot, life);
        }
        self.pass(1);
        (token, now)
    }

    fn seed_neighbour(&mut self, slot: usize, life: Time) {
        let Counter { value, end } = self.counter(slot);
        let is_ahead = !self.rules.has(Rule::NeighbourIsNotAhead);
        let seed = if is_ahead { self.clock + 2 * RESERVATION } else { self.clock };
        let raised =
            if self.rules.has(Rule::NeighbourIsNotLowered) { seed.max(value) } else { seed };
        self.store(slot, raised, Some(self.new_end(end, life)));
    }

    fn new_end(&self, end: Option<Time>, life: Time) -> Time {
        let longest = end.filter(|_| self.rules.has(Rule::SeedNeverShortens));
        self.clock.saturating_add(life).max(longest.unwrap_or_default())
    }

    /// Grants a lock by a script: the first and the last of the tokens that it reserves for this attempt, after
    /// it has passed over this many waiters.
    pub(crate) fn grant(&mut self, key: usize, owner: Owner, life: Time, gone: u8) -> (Time, Time) {
        let times = if self.rules.has(Rule::ReservesOncePerScript) { 1 } else { 1 + gone };
        let Counter { mut value, end } = self.counter(self.slots[key]);
        let mut first = value;
        for _ in 0..times {
            let is_one = value >= self.clock && self.rules.has(Rule::ReservesOneIfAhead);
            first = self.clock.max(value + 1);
            value = if is_one { first } else { first + RESERVATION - 1 };
        }
        self.data.locks[key] = Some(owner);
        let new_end = end.unwrap_or(self.clock.saturating_add(life));
        let last = self.store(self.slots[key], value, Some(new_end));
        self.pass(1);
        (first, last)
    }

    /// Lets time pass, in which the counter may expire. Each command and each script takes one tick.
    pub(crate) fn pass(&mut self, ticks: Time) {
        self.clock += ticks;
        for counter in &mut self.data.counters {
            counter.take_if(|counter| counter.end.is_some_and(|end| end <= self.clock));
        }
    }

    fn counter(&self, slot: usize) -> Counter {
        self.data.counters[slot].unwrap_or(Counter { value: 0, end: None })
    }

    fn store(&mut self, slot: usize, value: Time, end: Option<Time>) -> Time {
        self.data.counters[slot] = Some(Counter { value, end });
        value
    }
}
