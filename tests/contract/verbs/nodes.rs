//! The same verbs at two nodes of a cluster, between which slots move.
//!
//! Goal: a verb that does something else where its slot has moved, or that breaks a promise while it moves.
//! Method: the random sequences of the parent module. Where slots move between two steps, with all that is in them,
//! everything is as in memory. Where they move key by key, and steps come in between, less is promised: see
//! `rules.rs`. The clocks of both nodes stand still.

use std::time::Duration;

use lockable_tests::{clock, long_form, wait};

use self::rules::broken;
use self::store::Nodes;
use super::dice::Dice;
use super::reference::Reference;
use super::side::Side;
use super::state::State;
use super::step::{Scene, Step, What};
use super::{Story, keys};
use crate::fixture::real_time;

mod rules;
mod store;

#[test]
fn verbs_of_slots_that_have_moved_are_as_in_memory() {
    if !clock::can_be_set() {
        return;
    }
    let (mut both, mut count) = (Both::start(), 0);
    let sequences = u32::try_from(long_form(12, 30)).unwrap();
    for seed in 1..=sequences {
        both.clear(seed);
        let mut dice = Dice(u64::from(seed) + 1_000_000);
        let mut story = Story { seed, steps: Vec::new() };
        let mut last = None;
        for _ in 0..STEPS {
            let state = both.nodes.look(&both.redis);
            let key = dice.key();
            let moves = dice.below(5) == 0 && both.nodes.move_slot(&both.redis.keys[key]);
            let scene = Scene {
                asked: &both.memory.side.asked,
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
    assert!(count > sequences, "hardly any slot moved");
}

/// Memory and the nodes, which are to do the same.
struct Both {
    memory: Reference,
    redis: Side,
    nodes: Nodes,
}

impl Both {
    fn start() -> Self {
        let nodes = Nodes::start();
        let redis = Side::open(&nodes.url(), real_time());
        Self { memory: Reference::start(), redis, nodes }
    }

    fn clear(&mut self, seed: u32) {
        self.nodes.clear();
        self.memory.clear(keys(seed));
        self.redis.clear(keys(seed));
    }

    fn pass(&mut self, state: &State, time: Duration) -> Duration {
        let time = self.nodes.pass(state, time);
        self.memory.pass(time);
        time
    }

    /// Does the same to both, and compares what comes of it.
    fn take(&mut self, what: &What) {
        let answers = [self.memory.side.ask(what), self.redis.ask(what)];
        self.intervene(what);
        self.all_listen();
        let woken = self.memory.side.woken(0);
        let heard = self.redis.woken(woken.len());
        assert_eq!(answers[0], answers[1], "the answers of memory and of the nodes");
        assert_eq!(woken, heard, "the waiters that memory and the nodes wake");
        assert_eq!(self.memory.state(), self.nodes.look(&self.redis));
        assert!(self.redis.tokens.rise, "the tokens do not rise");
    }

    /// A release that queues another attempt does not wait until its process listens at the node, and one that has
    /// lost its subscription there listens when it asks. Until then a hand-off passes it over, unlike in memory. So
    /// those that wait ask, as they do once in a while.
    fn all_listen(&mut self) {
        wait::until(wait::HANG, || {
            let deaf = self.deaf();
            if let Some(attempt) = deaf {
                let ask = What::Ask { attempt };
                assert_eq!(self.memory.side.ask(&ask), self.redis.ask(&ask));
            }
            deaf.is_none()
        });
    }

    /// One that waits, and whose process hears of no wake-up, although it listens.
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
        self.memory.intervene(what);
        match what {
            What::Delete { key } => self.nodes.delete(&self.redis.keys[*key]),
            What::PutForeign { key, text, life } => {
                self.nodes.put(&self.redis.keys[*key], text, *life);
            }
            _ => {}
        }
    }
}

#[test]
fn verbs_of_slots_that_move_keep_their_promises() {
    if !clock::can_be_set() {
        return;
    }
    let mut nodes = Nodes::start();
    let mut redis = Side::open(&nodes.url(), real_time());
    let mut under_way = 0;
    let sequences = u32::try_from(long_form(10, 25)).unwrap();
    for seed in 1..=sequences {
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
    assert!(under_way > sequences, "hardly any verb came into a move");
}

/// What the nodes answer. A renewal in a slot that moves has a small part of its lease, which a busy machine may take
/// longer for; it is asked once more, as the renewal task does.
fn answer_in_time(redis: &mut Side, what: &What) -> String {
    let mut answer = redis.ask(what);
    wait::until(wait::HANG, || {
        let is_late = matches!(what, What::Renew { .. }) && answer.contains("no answer within");
        if is_late {
            answer = redis.ask(what);
        }
        !is_late
    });
    answer
}

/// The rest of a minimum hold is computed by the client's clock, which runs. Fence counters are not compared here.
fn without_minimum_hold(mut what: What) -> What {
    match &mut what {
        What::Release { keep, .. } | What::ReleaseTo { keep, .. } => *keep = Duration::ZERO,
        What::ReleaseAll { attempts } => {
            for (_, keep) in attempts {
                *keep = Duration::ZERO;
            }
        }
        What::Flush | What::CountAhead { .. } | What::LoseCount { .. } => return What::Advance,
        _ => {}
    }
    what
}

const STEPS: usize = 30;
