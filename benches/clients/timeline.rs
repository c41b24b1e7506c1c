//! What the worker of a run has written down.

use std::collections::{BTreeMap, HashSet};

/// Times are milliseconds of the monotonic clock.
#[derive(Default)]
pub(crate) struct Timeline {
    /// How many pairs succeeded in a millisecond: those where the event happens, and all others.
    successes: [BTreeMap<u64, usize>; 2],
    failures: Vec<Failure>,
}

struct Failure {
    at: u64,
    key: String,
    reason: String,
}

impl Timeline {
    /// Takes a line; those that say nothing of pairs say nothing here.
    pub(crate) fn add(&mut self, line: &str) {
        let words: Vec<_> = line.splitn(5, ' ').collect();
        match words[..] {
            ["+", group, at, count] => {
                let (group, at): (usize, u64) = (number(group), number(at));
                *self.successes[group].entry(at).or_default() += number::<usize>(count);
            }
            ["!", _, at, key, reason] => {
                let (key, reason) = (key.to_owned(), reason.to_owned());
                self.failures.push(Failure { at: number(at), key, reason });
            }
            _ => {}
        }
    }

    /// The last success anywhere.
    pub(crate) fn last(&self) -> u64 {
        let lasts = self.successes.iter().filter_map(|group| group.last_key_value());
        lasts.map(|(at, _)| *at).max().unwrap_or_default()
    }

    pub(crate) fn successes(&self, from: u64, to: u64) -> usize {
        self.successes.iter().flat_map(|group| group.range(from..=to)).map(|(_, count)| count).sum()
    }

    /// How many calls failed from then on, and for which reasons.
    pub(crate) fn reasons(&self, from: u64) -> BTreeMap<&str, usize> {
        let mut reasons = BTreeMap::new();
        for failure in self.failures.iter().filter(|failure| failure.at >= from) {
            *reasons.entry(failure.reason.as_str()).or_default() += 1;
        }
        reasons
    }

    /// How many of these keys had a call that failed.
    pub(crate) fn failed_among(&self, keys: &HashSet<String>) -> usize {
        let failed: HashSet<_> = self.failures.iter().map(|failure| &failure.key).collect();
        keys.iter().filter(|key| failed.contains(key)).count()
    }

    /// The longest time without a success where the event happens; `None` without any success.
    pub(crate) fn longest_here(&self, from: u64, to: u64) -> Option<u64> {
        longest(&self.successes[0], from, to)
    }

    /// The same everywhere else.
    pub(crate) fn longest_elsewhere(&self, from: u64, to: u64) -> Option<u64> {
        longest(&self.successes[1], from, to)
    }

    /// From the event to the end of the last pause of more than a second, or else of the longest pause; `None` when the
    /// last pause did not end.
    pub(crate) fn recovery(&self, event: u64, to: u64) -> Option<u64> {
        let group = &self.successes[0];
        let last = *group.range(event..=to).next_back()?.0;
        let pauses = pauses(group, event, last);
        let outage = pauses.iter().rev().find(|pause| length(pause) > LONG);
        let pause = outage.or_else(|| pauses.iter().max_by_key(|pause| length(pause)))?;
        (to - last <= LONG).then_some(pause.1 - event)
    }
}

type Pause = (u64, u64);

/// From one millisecond with a success to the next.
fn pauses(group: &BTreeMap<u64, usize>, from: u64, to: u64) -> Vec<Pause> {
    let inside = group.range(from..=to).map(|(at, _)| *at);
    let starts = std::iter::once(from).chain(inside.clone());
    starts.zip(inside.chain([to])).collect()
}

fn longest(group: &BTreeMap<u64, usize>, from: u64, to: u64) -> Option<u64> {
    let is_empty = group.is_empty();
    pauses(group, from, to).iter().map(length).max().filter(|_| !is_empty)
}

fn length((start, end): &Pause) -> u64 {
    end - start
}

fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(word: &str) -> T {
    word.parse().expect("the worker writes numbers")
}

/// A pause in which a caller would take the service for down.
const LONG: u64 = 1_000;
