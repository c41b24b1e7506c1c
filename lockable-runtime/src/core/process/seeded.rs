//! Randomness and a clock that a simulation sets for its thread, so that the same seed is the same run.

use std::cell::Cell;

use tokio::time::Instant;

#[derive(Clone, Copy)]
struct SeededRun {
    state: u64,
    start: Instant,
}

thread_local! {
    static RUN: Cell<Option<SeededRun>> = const { Cell::new(None) };
}

/// A seeded run of this thread, which ends when this is dropped.
pub(crate) struct Seeded(());

impl Seeded {
    pub(crate) fn start(seed: u64) -> Self {
        RUN.set(Some(SeededRun { state: seed, start: Instant::now() }));
        Self(())
    }
}

impl Drop for Seeded {
    fn drop(&mut self) {
        RUN.set(None);
    }
}

pub(crate) fn bits() -> Option<u64> {
    // SplitMix64.
    let run = RUN.get()?;
    let state = run.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    RUN.set(Some(SeededRun { state, ..run }));
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    Some(mixed ^ (mixed >> 31))
}

pub(crate) fn start() -> Option<Instant> {
    RUN.get().map(|run| run.start)
}
