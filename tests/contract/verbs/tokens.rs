//! The fencing tokens that one backend has given away.

use std::collections::HashMap;

use super::KEYS;

/// Of each key.
#[derive(Debug)]
pub(super) struct Tokens {
    latest: [Option<u64>; KEYS],
    /// The last one that was given away in this step.
    granted: HashMap<usize, u64>,
    /// Whether all of them were larger than those before.
    pub(super) rise: bool,
}

impl Tokens {
    pub(super) fn none() -> Self {
        Self { latest: [None; KEYS], granted: HashMap::new(), rise: true }
    }

    /// These tokens were given away, the first to the last.
    pub(super) fn grant(&mut self, key: usize, [first, last]: [u64; 2]) {
        self.rise &= self.latest[key] < Some(first);
        self.latest[key] = Some(last);
        self.granted.insert(key, last);
    }

    /// The last token of this step's grants, where there were any.
    pub(super) fn take_granted(&mut self, key: usize) -> Option<u64> {
        self.granted.remove(&key)
    }

    /// Expects nothing of tokens that were ahead of the clock, when their fence counter is lost.
    pub(super) fn forget_after(&mut self, key: usize, micros: u64) {
        self.latest[key] = self.latest[key].filter(|token| *token <= micros);
    }
}
