//! Choices that a seed determines.

use std::ops::Range;
use std::time::Duration;

/// A row of numbers, the same for the same seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The row of that seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below the limit, which is above zero.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Whether it is the one case of that many.
    pub fn is_one_of(&mut self, cases: u64) -> bool {
        self.below(cases) == 0
    }

    /// One of them.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        let count = u64::try_from(choices.len()).expect("no list is that long");
        let place = usize::try_from(self.below(count)).expect("it is below the length");
        choices[place]
    }

    /// A time in whole milliseconds.
    pub fn millis(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(range.start + self.below(range.end - range.start))
    }

    /// Another order of them.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for end in (1..list.len()).rev() {
            let limit = u64::try_from(end + 1).expect("no list is that long");
            list.swap(end, usize::try_from(self.below(limit)).expect("it is below the length"));
        }
    }

    /// `SplitMix64`: any seed is a good one.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::Dice;

    #[test]
    fn a_seed_determines_every_choice() {
        let row = |seed| {
            let mut dice = Dice::new(seed);
            let mut list = [1, 2, 3, 4, 5, 6, 7, 8];
            dice.shuffle(&mut list);
            (list, dice.below(1 << 40), dice.pick(&["a", "b", "c"]), dice.millis(5..9))
        };
        assert_eq!(row(7), row(7));
        assert_ne!(row(7), row(8));
    }
}
