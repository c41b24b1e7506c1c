//! Numbers by which a sequence is made.

use std::time::Duration;

use super::UNIT;

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

    /// Two, four, six or eight units.
    pub(super) fn life(&mut self) -> Duration {
        let count = 1 + self.below(4);
        2 * UNIT * u32::try_from(count).unwrap()
    }

    /// A life, or more often none.
    pub(super) fn keep(&mut self) -> Duration {
        if self.below(5) > 0 { Duration::ZERO } else { self.life() }
    }
}
