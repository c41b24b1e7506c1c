//! Random orders of events: two processes with a line each, over the store in memory and a network that delays and
//! reorders everything.
//!
//! Goal: two turns at once, a grant without an owner, a call that is forgotten, served before its turn or twice, and
//! anything left when the last call has left. Method: packets arrive in an order that the seed decides. Some seeds lose
//! answers, or locks; then only what holds in that case is expected.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::process::{Packet, Process};
use super::store::Store;
use crate::core::backend::Attempt;
use crate::core::process::clock::Moment;
use crate::core::waiters::line::{Behind, Granted, LastReply, TurnEnd};
use crate::simulation::dice::Dice;

const ORDERS: u64 = 20_000;

/// On a clock that stands still, the store's leases last as long as the order needs.
#[tokio::test(start_paused = true)]
async fn every_order_of_events_serves_every_call_once() {
    let store = Store::open();
    let mut counts = Counts::default();
    for seed in 1..=ORDERS {
        let mut order = Order::new(&store, seed, &mut counts);
        order.run();
    }
    println!("{ORDERS} orders: {counts:#?}");
    for what in SEEN {
        assert!(counts.get(what).is_some_and(|count| *count > ORDERS / 100), "hardly any {what}");
    }
}

type Counts = BTreeMap<&'static str, u64>;

/// The events that the orders have to include.
const SEEN: [&str; 12] = [
    "calls that joined",
    "calls that left",
    "tries that end",
    "turns",
    "passes",
    "queries without an answer",
    "withdrawals",
    "unwanted or returned grants",
    "locks lost",
    "releases with a next entry",
    "releases without an answer",
    "messages",
];

const DEADLINE: Duration = Duration::from_secs(1);

const STEPS: u64 = 40;

const MAX_REST: usize = 2_000;

struct Order<'a> {
    store: &'a Store,
    processes: [Process; 2],
    dice: Dice,
    now: Moment,
    seed: u64,
    loses_answers: bool,
    loses_locks: bool,
    latest: u64,
    counts: &'a mut Counts,
}

impl<'a> Order<'a> {
    fn new(store: &'a Store, seed: u64, counts: &'a mut Counts) -> Self {
        let mut dice = Dice::of(seed);
        let (loses_answers, loses_locks) = (dice.chance(300), dice.chance(300));
        let process = |number: usize| {
            // Owner tokens differ from order to order.
            Process::new(store.origins[number], seed << 16)
        };
        let (processes, now) = ([process(0), process(1)], Moment::from_nanos(1_000_000_000));
        Self { store, processes, dice, now, seed, loses_answers, loses_locks, latest: 0, counts }
    }

    fn run(&mut self) {
        for _ in 0..STEPS {
            self.step(true);
        }
        let mut rest = 0;
        while !self.processes.iter().all(Process::is_quiet) {
            self.step(false);
            if self.loses_answers && self.dice.chance(20) {
                self.store.evict();
            }
            rest += 1;
            assert!(rest < MAX_REST, "order {} does not come to rest", self.seed);
        }
        if self.loses_answers {
            // A request may have landed that nothing is known of: its lease ends, or its turn.
            self.store.flush();
        }
        for at in 0..2 {
            drop(self.store.published(at));
        }
        for process in &self.processes {
            assert!(process.line.is_over(), "order {}: a line is left", self.seed);
        }
        assert!(self.store.is_empty(), "order {}: a lock or a entry that no call has", self.seed);
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Something happens; calls join, and locks are lost, only while it is `busy`.
    fn step(&mut self, busy: bool) {
        self.now = self.now.after(self.dice.micros_below(2_000));
        let at = usize::from(self.dice.chance(400));
        match self.dice.below(if busy { 10 } else { 7 }) {
            0..5 => self.arrives(at),
            5 => self.holder_ends(at),
            6 => self.comes_due(at, busy),
            7 | 8 => self.call_joins(at),
            _ => match self.dice.below(3) {
                0 | 1 => self.call_leaves(at),
                _ => self.something_breaks(at),
            },
        }
        for at in 0..2 {
            let grants = self.store.published(at);
            self.processes[at].under_way.extend(grants.into_iter().map(Packet::Published));
        }
    }

    fn call_joins(&mut self, at: usize) {
        self.count("calls that joined");
        let is_fair = self.dice.chance(150);
        let is_behind_try = self.dice.chance(300);
        let behind = if is_behind_try { Behind::Try(DEADLINE) } else { Behind::Holder };
        let ends = is_behind_try && self.dice.chance(700);
        let (process, now) = (&mut self.processes[at], self.now);
        process.new_call_joins(is_fair, behind, now);
        process.take_due();
        if ends {
            let last_reply =
                if self.dice.chance(500) { LastReply::Busy } else { LastReply::Nothing };
            self.processes[at].under_way.push(Packet::Tried(last_reply));
            self.count("tries that end");
        }
    }

    fn call_leaves(&mut self, at: usize) {
        let process = &mut self.processes[at];
        let given = process.under_way.iter().filter_map(|packet| match packet {
            Packet::Delivered(number, _) => Some(*number),
            _ => None,
        });
        let here: Vec<u64> = process.waiting.iter().copied().chain(given).collect();
        if here.is_empty() {
            return;
        }
        let number = self.dice.one_of(&here);
        process.leaves(number, self.now);
        self.count("calls that left");
    }

    fn something_breaks(&mut self, at: usize) {
        if self.loses_locks && self.dice.chance(500) {
            self.store.evict();
            self.count("locks lost");
        } else if self.loses_answers && self.dice.chance(300) {
            self.processes[at].is_refused(self.now);
        }
    }

    fn comes_due(&mut self, at: usize, busy: bool) {
        let Some(due) = self.processes[at].due else { return };
        if busy && due > self.now.after(Duration::from_millis(100)) {
            return;
        }
        self.now = self.now.max(due);
        let is_heard = !(busy && self.loses_answers && self.dice.chance(200));
        let is_sent = self.dice.chance(900);
        self.processes[at].comes_due(is_sent, is_heard, self.now);
    }

    fn holder_ends(&mut self, at: usize) {
        let process = &mut self.processes[at];
        let Some((_, attempt)) = process.holding.pop_first() else { return };
        let actions = process.line.passed(&attempt, self.now);
        if actions.deliver.is_some() {
            process.perform(actions);
            return self.count("passes");
        }
        process.perform(actions);
        match self.dice.below(10) {
            0 => {
                let actions = process.line.deferred(&attempt, self.now);
                process.perform(actions);
                process.under_way.push(Packet::Deferred(attempt));
            }
            1 => {
                let actions = process.line.lost(&attempt, self.now);
                process.perform(actions);
            }
            _ => {
                let is_heard = !(self.loses_answers && self.dice.chance(200));
                process.releases(attempt, is_heard, self.now);
            }
        }
    }

    fn arrives(&mut self, at: usize) {
        let process = &mut self.processes[at];
        let Some(which) = process.under_way.len().checked_sub(1) else { return };
        let which = self.dice.below(which as u64 + 1);
        let packet = process.under_way.swap_remove(usize::try_from(which).unwrap());
        self.deliver(at, packet);
    }

    fn deliver(&mut self, at: usize, packet: Packet) {
        let (process, now) = (&mut self.processes[at], self.now);
        match packet {
            Packet::Query(attempt, is_heard) => {
                let answer = self.store.enqueue(&attempt);
                if is_heard {
                    process.under_way.push(Packet::Answer(attempt, answer));
                }
            }
            Packet::Answer(attempt, answer) => {
                let actions = process.line.answered(&attempt, &answer, now);
                process.perform(actions);
            }
            Packet::NoAnswer(attempt) => {
                process.hears_nothing(attempt, now);
                self.count("queries without an answer");
            }
            Packet::Unanswered(attempt) => {
                let _is_leftover: bool = process.line.query_ends(&attempt, false);
                process.take_due();
            }
            Packet::Withdrawal(attempt) => {
                self.store.leave(&attempt);
                self.count("withdrawals");
            }
            Packet::Deferred(attempt) => {
                self.store.release(&attempt, None);
                self.count("unwanted or returned grants");
            }
            Packet::Release(attempt, turn_end, is_heard) => {
                self.release(at, attempt, turn_end, is_heard);
            }
            Packet::Released(attempt, turn_end) => {
                let actions = process.line.released(&attempt, turn_end, now);
                process.perform(actions);
            }
            Packet::Published(wake_up) => {
                if self.dice.chance(100) {
                    process.under_way.push(Packet::Published(wake_up.clone()));
                }
                process.hears(&wake_up);
                self.count("messages");
            }
            Packet::Tried(last_reply) => process.try_ends(last_reply, now),
            Packet::Delivered(number, granted) => self.receives(at, number, granted),
        }
    }

    fn release(&mut self, at: usize, attempt: Arc<Attempt>, turn_end: TurnEnd, is_heard: bool) {
        let (_, grant) = self.store.release(&attempt, turn_end.next.as_ref());
        let now = self.now;
        if turn_end.next.is_some() {
            self.count("releases with a next entry");
        }
        let process = &mut self.processes[at];
        if is_heard {
            let turn_end = TurnEnd { is_answered: true, grant, ..turn_end };
            return process.under_way.push(Packet::Released(attempt, turn_end));
        }
        // The background releases it again, and once the answer is given up the line queries.
        process.under_way.push(Packet::Deferred(Arc::clone(&attempt)));
        let actions = process.line.released(&attempt, turn_end, now);
        process.perform(actions);
        self.count("releases without an answer");
    }

    fn receives(&mut self, at: usize, number: u64, granted: Granted) {
        let process = &mut self.processes[at];
        process.holding.insert(number, granted.attempt);
        self.count("turns");
        if !self.loses_locks && !self.loses_answers {
            self.holds_alone(at, number);
            let former = std::mem::replace(&mut self.latest, granted.grant.fencing_token().into());
            assert!(self.latest > former, "order {}: a fencing token goes back", self.seed);
        }
    }

    fn holds_alone(&self, at: usize, number: u64) {
        let holders: usize = self.processes.iter().map(|process| process.holding.len()).sum();
        assert_eq!(holders, 1, "order {}: two turns at once", self.seed);
        let attempt = &self.processes[at].holding[&number];
        let owner = self.store.owner();
        assert_eq!(owner.as_deref(), Some(attempt.owner.as_ref()), "order {}", self.seed);
    }
}
