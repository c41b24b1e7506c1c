//! What the machine adds to every figure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::now;

/// A thread that sleeps for a millisecond again and again, and notes by how much it woke too late at most: a quiet
/// machine is late by less than a millisecond.
pub(crate) struct Machine {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    /// In microseconds.
    late: AtomicU64,
}

impl Machine {
    pub(crate) fn watch() -> Self {
        let shared = Arc::<Shared>::default();
        let watched = Arc::clone(&shared);
        Self { shared, thread: thread::spawn(move || watched.note()) }
    }

    /// The latest that it woke.
    pub(crate) fn late(self) -> Duration {
        self.shared.is_over.store(true, Ordering::Release);
        self.thread.join().expect("it only sleeps");
        Duration::from_micros(self.shared.late.load(Ordering::Acquire))
    }
}

impl Shared {
    #[expect(clippy::disallowed_methods, reason = "the sleeps are what is measured")]
    fn note(&self) {
        while !self.is_over.load(Ordering::Acquire) {
            let start = now();
            thread::sleep(Duration::from_millis(1));
            let late = start.elapsed().saturating_sub(Duration::from_millis(1));
            self.late
                .fetch_max(u64::try_from(late.as_micros()).unwrap_or(u64::MAX), Ordering::AcqRel);
        }
    }
}
