//! How long each test of a binary took, from the lines that it prints.
//!
//! The test runner of the standard library says when a test ended, and not when it started. But it runs its tests
//! in the order of its list, as many at a time as it has threads, and starts the next when one ends.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

pub(super) struct Durations {
    waiting: VecDeque<String>,
    running: HashMap<String, Instant>,
}

impl Durations {
    pub(super) fn new(list: &[String], threads: usize, now: Instant) -> Self {
        let mut waiting: VecDeque<_> = list.iter().cloned().collect();
        let first = waiting.drain(..threads.min(list.len()));
        let running = first.map(|name| (name, now)).collect();
        Self { waiting, running }
    }

    /// How long the test ran that has ended now.
    pub(super) fn ended(&mut self, name: &str, now: Instant) -> Option<Duration> {
        if let Some(next) = self.waiting.pop_front() {
            self.running.insert(next, now);
        }
        Some(now.duration_since(self.running.remove(name)?))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Durations;
    use crate::test::report::now;

    #[test]
    fn the_next_test_starts_when_one_ends() {
        let start = now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let list = ["a", "b", "c", "d"].map(str::to_owned);
        let mut durations = Durations::new(&list, 2, start);
        let mut ended = |name, seconds| durations.ended(name, at(seconds)).map(|it| it.as_secs());
        assert_eq!(ended("b", 3), Some(3));
        assert_eq!(ended("c", 4), Some(1));
        assert_eq!(ended("a", 9), Some(9));
        assert_eq!(ended("d", 9), Some(5));
        assert_eq!(ended("e", 9), None, "a name that is not in the list");
    }
}
