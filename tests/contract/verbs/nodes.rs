//! The same verbs at two nodes of a cluster, between which slots move.
//!
//! Goal: a verb that does something else where its slot has moved, or that breaks a promise while it moves.
//! Method: the random sequences of the parent module. Where slots move between two steps, with all that is in them,
//! everything is as in memory. Where they move key by key, and steps come in between, less is promised: see
//! `rules.rs`. The clocks of both nodes stand still.

use std::time::Duration;

use lockable_runtime::__internals::MemoryStore;
use lockable_tests::{clock, wait};

use self::rules::broken;
use self::store::Nodes;
use super::dice::Dice;
use super::side::Side;
use super::state::{Place, State};
use super::step::{Scene, Step, What};
use super::{KEYS, Story};
use crate::fixture::{Fixture, LIMIT, Memory, Redis};

mod rules;
mod store;

#[test]
fn verbs_of_slots_that_have_moved_are_as_in_memory() {
    if !clock::can_be_set() {
        return;
    }
    let (mut both, mut count) = (Both::start(), 0);
    for seed in 1..=WHOLE {
        both.clear(seed);
        let mut dice = Dice(u64::from(seed) + 1_000_000);
        let mut story = Story { seed, steps: Vec::new() };
        let mut last = None;
        for _ in 0..STEPS {
            let state = both.nodes.look(&both.redis);
            let key = dice.key();
            let moves = dice.below(5) == 0 && both.nodes.move_slot(&both.redis.keys[key]);
            let scene = Scene {
                asked: &both.memory.asked,
                state: &state,
                patience: both.nodes.patience(&both.redis),
                last: last.as_ref().filter(|_| !moves),
            };
            let mut step = Step::any(&mut dice, &scene);
            step.what = without_minimum_hold(step.what);
            let later = both.pass(&state, step.later);
            last = Some(step.clone());
            let mut all = Vec::new();
            if moves {
                count += 1;
                story.steps.push(format!("slot {key} moves"));
                // A process that listened there has lost its subscription to that node, and asks for all that wait.
                all.extend(state.queued().into_iter().map(|attempt| What::Ask { attempt }));
            }
            all.push(step.what);
            for what in all {
                story.steps.push(format!("{later:?} later: {what:?}"));
                both.take(&what);
            }
        }
    }
    println!("{count} slots moved");
    assert!(count > WHOLE, "hardly any slot moved");
}

/// Memory and the nodes, which are to do the same.
struct Both {
    memory: Side,
    redis: Side,
    store: MemoryStore,
    nodes: Nodes,
    _fixture: Memory,
}

impl Both {
    fn start() -> Self {
        let (fixture, nodes) = (Memory::start(), Nodes::start());
        Self {
            memory: Side::open(&fixture.url(), Memory::runtime()),
            redis: Side::open(&nodes.url(), Redis::runtime()),
            store: MemoryStore::open(fixture.url().strip_prefix("memory://").unwrap()).unwrap(),
            nodes,
            _fixture: fixture,
        }
    }

    fn clear(&mut self, seed: u32) {
        self.nodes.clear();
        self.look(MemoryStore::flush);
        self.memory.clear(keys(seed));
        self.redis.clear(keys(seed));
    }

    fn pass(&mut self, state: &State, time: Duration) -> Duration {
        let time = self.nodes.pass(state, time);
        self.memory.runtime.block_on(tokio::time::advance(time));
        time
    }

    /// Does the same to both, and compares what comes of it.
    fn take(&mut self, what: &What) {
        let answers = [self.memory.ask(what), self.redis.ask(what)];
        self.intervene(what);
        self.all_listen();
        let granted = self.memory.published(0);
        let heard = self.redis.published(granted.len());
        assert_eq!(answers[0], answers[1], "the answers of memory and of the nodes");
        assert_eq!(granted, heard, "the grants of memory and of the nodes");
        assert_eq!(self.in_memory(), self.nodes.look(&self.redis));
        assert!(self.redis.tokens.rise, "the tokens do not rise");
    }

    /// A release that queues another attempt does not wait until its process listens at the node, and one that has
    /// lost its subscription there listens when it asks. Until then a hand-off passes it over, unlike in memory. So
    /// those that wait ask, as they do once in a while.
    fn all_listen(&mut self) {
        wait::until(LIMIT, || {
            let deaf = self.deaf();
            if let Some(attempt) = deaf {
                let ask = What::Ask { attempt };
                assert_eq!(self.memory.ask(&ask), self.redis.ask(&ask));
            }
            deaf.is_none()
        });
    }

    /// One that waits, and whose process hears of no grant, although it listens.
    fn deaf(&self) -> Option<usize> {
        let channels = self.redis.channels();
        self.nodes.look(&self.redis).queued().into_iter().find(|attempt| {
            let asked = &self.redis.asked[*attempt];
            let name = &self.redis.keys[asked.key];
            let channel = channels.get(asked.process);
            channel.is_some_and(|channel| !self.nodes.has_listener(name, channel))
        })
    }

    fn intervene(&self, what: &What) {
        match what {
            What::Delete { key } => {
                self.look(|store| store.delete(&self.memory.keys[*key]));
                self.nodes.delete(&self.redis.keys[*key]);
            }
            What::PutForeign { key, text, life } => {
                let centuries = life.unwrap_or(Duration::MAX);
                self.look(|store| store.put_foreign(&self.memory.keys[*key], centuries));
                self.nodes.put(&self.redis.keys[*key], text, *life);
            }
            _ => {}
        }
    }

    fn in_memory(&self) -> State {
        let lives = self.look(MemoryStore::keyspace);
        let place = |key: usize| {
            let name = &self.memory.keys[key];
            let lock = lives.iter().find(|(of, _)| of == name);
            let lock = lock.map(|(_, life)| (self.memory.holder(key), (*life).into()));
            let queue = self.store.queue(name);
            let queue = queue.iter().map(|owner| self.memory.number(owner)).collect();
            Place { lock, queue }
        };
        State { places: std::array::from_fn(place), others: Vec::new() }
    }

    /// Inside of the runtime whose clock is paused.
    fn look<T>(&self, look: impl FnOnce(&MemoryStore) -> T) -> T {
        self.memory.runtime.block_on(async { look(&self.store) })
    }
}

#[test]
fn verbs_of_slots_that_move_keep_their_promises() {
    if !clock::can_be_set() {
        return;
    }
    let mut nodes = Nodes::start();
    let mut redis = Side::open(&nodes.url(), Redis::runtime());
    let mut under_way = 0;
    for seed in 1..=IN_PARTS {
        nodes.clear();
        redis.clear(keys(seed));
        let mut dice = Dice(u64::from(seed) + 2_000_000);
        let mut story = Story { seed, steps: Vec::new() };
        for _ in 0..STEPS {
            if dice.below(3) > 0 {
                let name = redis.keys[dice.key()].clone();
                story.steps.push(nodes.continue_move(&name, &mut dice));
            }
            let state = nodes.look(&redis);
            let patience = nodes.patience(&redis);
            let scene = Scene { asked: &redis.asked, state: &state, patience, last: None };
            let step = Step::any(&mut dice, &scene);
            if matches!(step.what, What::PutForeign { .. } | What::Flush) {
                continue;
            }
            let later = nodes.pass(&state, step.later);
            story.steps.push(format!("{later:?} later: {:?}", step.what));
            let before = nodes.look(&redis);
            let answer = answer_in_time(&mut redis, &step.what);
            if let What::Delete { key } = &step.what {
                nodes.delete(&redis.keys[*key]);
            }
            let after = nodes.look(&redis);
            under_way += u32::from(nodes.moves());
            let found = broken(&mut redis, &step.what, &answer, &before, &after);
            assert!(found.is_empty(), "{answer}\n{}\n{before:?}\n{after:?}", found.join("\n"));
        }
        nodes.end_moves();
    }
    println!("{under_way} verbs while a slot moved");
    assert!(under_way > IN_PARTS, "hardly any verb came into a move");
}

/// What the nodes answer. A renewal in a slot that moves has a small part of its lease, which a busy machine may take
/// longer for; it is asked once more, as the renewal task does.
fn answer_in_time(redis: &mut Side, what: &What) -> String {
    let mut answer = redis.ask(what);
    wait::until(LIMIT, || {
        let is_late = matches!(what, What::Renew { .. }) && answer.contains("no answer within");
        if is_late {
            answer = redis.ask(what);
        }
        !is_late
    });
    answer
}

/// One with a hash tag, one without, and one with what separates the parts of a message.
fn keys(seed: u32) -> [String; KEYS] {
    [format!("{{a{seed}}}:k"), format!("b{seed}"), format!("c \n{seed}")]
}

/// The rest of a minimum hold is computed by the client's clock, which runs. Fence counters are not compared here.
fn without_minimum_hold(what: What) -> What {
    match what {
        What::Release { attempt, .. } => What::Release { attempt, keep: Duration::ZERO },
        What::ReleaseTo { attempt, next, .. } => {
            What::ReleaseTo { attempt, next, keep: Duration::ZERO }
        }
        What::ReleaseAll { attempts } => What::ReleaseAll {
            attempts: attempts.into_iter().map(|(attempt, _)| (attempt, Duration::ZERO)).collect(),
        },
        What::Flush | What::CountAhead { .. } | What::LoseCount { .. } => What::Advance,
        what => what,
    }
}

const WHOLE: u32 = 30;
const IN_PARTS: u32 = 25;
const STEPS: usize = 30;
