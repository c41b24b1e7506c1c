//! When something happened to the servers.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::monotonic;

/// Milliseconds of the monotonic clock, written by the thread that makes the event happen; zero before.
#[derive(Default)]
pub(crate) struct Moments {
    event: AtomicU64,
    over: AtomicU64,
}

impl Moments {
    /// The event happens now.
    pub(crate) fn begin(&self) {
        self.event.store(now(), Ordering::SeqCst);
    }

    /// From now on the servers can do all that they could before.
    pub(crate) fn end(&self) {
        self.over.store(now(), Ordering::SeqCst);
    }

    pub(crate) fn event(&self) -> Option<u64> {
        Some(self.event.load(Ordering::SeqCst)).filter(|at| *at > 0)
    }

    pub(crate) fn over(&self) -> Option<u64> {
        Some(self.over.load(Ordering::SeqCst)).filter(|at| *at > 0)
    }
}

/// As the workers count.
pub(crate) fn now() -> u64 {
    monotonic() / 1_000_000
}
