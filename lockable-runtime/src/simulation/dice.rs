use std::time::Duration;

/// A generator of random numbers; the same seed gives the same numbers.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn of(seed: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        // The first numbers of seeds that are close to each other are, too.
        for _ in 0..8 {
            dice.next();
        }
        dice
    }

    /// xorshift64*.
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1_000) < per_mille
    }

    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }

    pub(crate) fn millis_below(&mut self, end: u64) -> Duration {
        Duration::from_millis(self.below(end))
    }

    pub(crate) fn micros_below(&mut self, end: u64) -> Duration {
        Duration::from_micros(self.below(end))
    }
}
