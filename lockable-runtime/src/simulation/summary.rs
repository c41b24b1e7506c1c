use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::mix::{Kind, class};
use super::slot_owners::Topology;
use super::trial::Outcome;

/// From this many seeds on, as in the suite, each of `EXPECTED` has to occur.
const ENOUGH: u64 = 180;

const EXPECTED: [&str; 42] = [
    "all permits",
    "blocked runtimes",
    "calls behind a try",
    "calls cancelled",
    "calls done already",
    "calls that wait while a slot moves",
    "campaigns",
    "changes last_reply",
    "extensions",
    "failovers last_reply of",
    "grants used",
    "guards dropped",
    "guards released",
    "holders stopped",
    "leaders dropped",
    "leaders elected again",
    "leaders resigned",
    "locks forced",
    "locks lost",
    "locks lost by a switch",
    "messages of operators lost",
    "moves of slots",
    "passes",
    "permits",
    "replies lost",
    "requests done by half",
    "requests lost",
    "requests redirected",
    "requests refused",
    "several locks",
    "sync calls completed",
    "terms of leaders",
    "tickets made",
    "tickets of stopped locks",
    "tickets redeemed",
    "tickets refused",
    "tries of a held lock",
    "wait limits reached",
    "wake-ups doubled",
    "wake-ups forged",
    "wake-ups lost",
    "wake-ups published",
];

pub(super) struct Summary {
    start: Instant,
    millis: u64,
    seeds: u64,
    counts: BTreeMap<&'static str, u64>,
    /// The longest last call once it was calm: where nothing had failed, and where much had.
    longest_waits: [Duration; 2],
    pub(super) failed: BTreeMap<u64, Vec<String>>,
}

impl Summary {
    pub(super) fn new(millis: u64) -> Self {
        Self {
            start: Instant::now(),
            millis,
            seeds: 0,
            counts: BTreeMap::new(),
            longest_waits: [Duration::ZERO; 2],
            failed: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, seed: u64, outcome: Outcome) {
        self.seeds += 1;
        for (what, count) in outcome.counts {
            *self.counts.entry(what).or_default() += count;
        }
        let longest =
            &mut self.longest_waits[usize::from(class(seed) != (Kind::Mild, Topology::One))];
        *longest = outcome.longest_wait.max(*longest);
        if !outcome.violations.is_empty() {
            self.failed.insert(seed, outcome.violations);
        }
    }

    /// Panics if many seeds have not shown what they are for.
    pub(super) fn assert_enough(&self) {
        let is_missing = |what: &&str| !self.counts.contains_key(what);
        let missing: Vec<_> = EXPECTED.into_iter().filter(is_missing).collect();
        assert!(self.seeds < ENOUGH || missing.is_empty(), "never seen: {missing:?}");
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let took = self.start.elapsed();
        let rate = f64::from(u32::try_from(self.seeds).unwrap_or(u32::MAX)) / took.as_secs_f64();
        let [mild, wild] = self.longest_waits;
        writeln!(
            f,
            "{} seeds of {} ms in {took:.1?}, {rate:.0} a second",
            self.seeds, self.millis
        )?;
        writeln!(f, "longest wait once it was calm: {mild:.1?}, after faults {wild:.1?}")?;
        for (what, count) in &self.counts {
            writeln!(f, "{count:>9} {what}")?;
        }
        Ok(())
    }
}
