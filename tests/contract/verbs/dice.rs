//! Numbers by which a sequence is made.

use std::time::Duration;

use super::{KEYS, PROCESSES};

pub(super) const LONGEST: Duration = Duration::from_secs(90);

/// Reproducible numbers: Marsaglia's xorshift.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        for (left, shift) in [(true, 13), (false, 7), (true, 17)] {
            self.0 ^= if left { self.0 << shift } else { self.0 >> shift };
        }
        let limit = u64::try_from(limit).unwrap();
        usize::try_from((self.0 >> 16) % limit).unwrap()
    }

    pub(super) fn one_of<T: Copy>(&mut self, things: &[T]) -> Option<T> {
        (!things.is_empty()).then(|| things[self.below(things.len())])
    }

    /// Mostly the first, so that many meet there.
    pub(super) fn key(&mut self) -> usize {
        self.below(KEYS * 2).saturating_sub(KEYS)
    }

    /// Mostly one that listens.
    pub(super) fn process(&mut self) -> usize {
        [0, 1, 0, 1, PROCESSES - 1][self.below(5)]
    }

    /// Shorter and longer than the first second of a lock that is handed off, and such that the lives of
    /// queues and fence counters differ.
    pub(super) fn life(&mut self) -> Duration {
        let lives = [500, 10_000, 30_000].map(Duration::from_millis);
        lives.get(self.below(4)).copied().unwrap_or(LONGEST)
    }

    /// A minimum hold, or more often none.
    pub(super) fn keep(&mut self) -> Duration {
        Duration::from_millis([2_000, 20_000, 0, 0, 0][self.below(5)])
    }
}
