//! What may be done to both stores.

use std::time::Duration;

use super::dice::Dice;
use super::side::Asked;
use super::state::State;
use super::{KEYS, PROCESSES};

/// Attempts are named by their number, and so are processes.
#[derive(Debug)]
pub(super) enum Step {
    /// A new attempt that does not wait.
    Acquire {
        key: &'static str,
        ttl: Duration,
    },
    /// A new attempt that waits.
    Enqueue {
        key: &'static str,
        process: usize,
        ttl: Duration,
    },
    /// The same attempt once more, in the same way.
    Repeat {
        attempt: usize,
    },
    Renew {
        batch: Vec<(usize, Option<Duration>)>,
    },
    Release {
        attempt: usize,
        keep: Duration,
    },
    /// Of one attempt of each key at most, all at once.
    ReleaseAll {
        attempts: Vec<usize>,
    },
    ReleaseTo {
        attempt: usize,
        next: Next,
        keep: Duration,
    },
    Leave {
        attempt: usize,
    },
    Inspect {
        key: &'static str,
    },
    PutForeign {
        key: &'static str,
        life: Duration,
    },
    Delete {
        key: &'static str,
    },
    Flush,
    /// The server's clock is set back, so that the fence counter is ahead of it.
    SetBack {
        key: &'static str,
    },
    Advance {
        time: Duration,
    },
}

/// Who is queued with a release.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    New {
        process: usize,
        ttl: Duration,
    },
    /// One that was asked for before, as a request does that is repeated.
    Known(usize),
}

impl Step {
    pub(super) fn any(dice: &mut Dice, asked: &[Asked], state: &State) -> Self {
        let key = KEYS[dice.below(KEYS.len())];
        if asked.is_empty() {
            return Self::Acquire { key, ttl: dice.life() };
        }
        let attempt = one_of(dice, asked.len(), state);
        match dice.below(100) {
            0..10 => Self::Acquire { key, ttl: dice.life() },
            10..32 => Self::Enqueue { key, process: dice.below(PROCESSES), ttl: dice.life() },
            32..40 => Self::Repeat { attempt },
            40..48 => Self::Renew { batch: batch(dice, asked.len(), state) },
            48..58 => Self::Release { attempt, keep: dice.keep() },
            58..64 => Self::ReleaseAll { attempts: of_each_key(dice, asked, state) },
            64..78 => Self::ReleaseTo {
                attempt,
                next: Next::any(dice, asked, attempt),
                keep: dice.keep(),
            },
            78..86 => Self::Leave { attempt },
            86..89 => Self::Inspect { key },
            89..91 => Self::PutForeign { key, life: dice.life() },
            91..94 => Self::Delete { key },
            94 => Self::Flush,
            95 => Self::SetBack { key },
            _ => Self::Advance { time: dice.life() / 2 },
        }
    }
}

impl Next {
    /// One of the same key that waits, and is another.
    fn any(dice: &mut Dice, asked: &[Asked], attempt: usize) -> Self {
        let is_next = |at: &usize| {
            *at != attempt && asked[*at].waits() && asked[*at].key() == asked[attempt].key()
        };
        let latest = (0..asked.len()).rev().filter(is_next).take(3).collect::<Vec<_>>();
        match dice.one_of(&latest) {
            Some(known) if dice.below(2) == 0 => Self::Known(known),
            _ => Self::New { process: dice.below(PROCESSES), ttl: dice.life() },
        }
    }
}

/// One who has a lock, one who is queued, or one of the latest.
fn one_of(dice: &mut Dice, asked: usize, state: &State) -> usize {
    let concerned = match dice.below(4) {
        0 | 1 => dice.one_of(&state.holders()),
        2 => dice.one_of(&state.queued()),
        _ => None,
    };
    concerned.unwrap_or_else(|| asked - 1 - dice.below(asked.min(6)))
}

fn of_each_key(dice: &mut Dice, asked: &[Asked], state: &State) -> Vec<usize> {
    let mut attempts: Vec<usize> = Vec::new();
    for _ in 0..2 * KEYS.len() {
        let attempt = one_of(dice, asked.len(), state);
        if attempts.iter().all(|other| asked[*other].key() != asked[attempt].key()) {
            attempts.push(attempt);
        }
    }
    attempts
}

/// The same attempt, or the same key, may come twice.
fn batch(dice: &mut Dice, asked: usize, state: &State) -> Vec<(usize, Option<Duration>)> {
    let count = 1 + dice.below(5);
    let mut one = || (one_of(dice, asked, state), (dice.below(3) > 0).then(|| dice.life()));
    (0..count).map(|_| one()).collect()
}
