//! How much time the machine gives to this process.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lockable_runtime::LockError;

/// A measure for what must come in time, which a slow machine does not fail.
///
/// A thread sleeps for a millisecond at a time and counts. On a quiet machine the count follows the
/// clock. On a busy one each of those sleeps ends late, as everything does that a test waits for, and
/// the count falls behind. So a bound on the count grows with the load, and on a quiet machine
/// it is as strict as one on the clock.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    start: Instant,
    count: u64,
}

impl Pace {
    /// Measures from now on.
    pub fn start() -> Self {
        static COUNTER: Once = Once::new();
        COUNTER.call_once(|| drop(thread::spawn(count)));
        Self { start: now(), count: COUNT.load(Ordering::Relaxed) }
    }

    /// The time that the machine has given since the start: never more than has passed.
    pub fn elapsed(&self) -> Duration {
        Duration::from_millis(COUNT.load(Ordering::Relaxed).saturating_sub(self.count + 1))
    }

    /// How far that is behind the clock, which is what the machine may have added to a wait.
    pub fn lag(&self) -> Duration {
        self.start.elapsed().saturating_sub(self.elapsed())
    }

    /// Whether the machine may have lost a lock that was handed off since the start: its first lease is a second.
    pub fn is_stalled(&self) -> bool {
        self.lag() > Duration::from_millis(500)
    }

    /// Panics when a lock that was handed off since the start was not released, and no stall explains its loss.
    #[track_caller]
    pub fn assert_released(&self, release: &Result<(), LockError>) {
        let is_explained = |error: &LockError| error.is_lost() && self.is_stalled();
        assert!(release.as_ref().err().is_none_or(is_explained), "{release:?}");
    }
}

/// Milliseconds, each of them slept through.
static COUNT: AtomicU64 = AtomicU64::new(0);

#[expect(clippy::disallowed_methods, reason = "the sleeps are what is measured")]
fn count() {
    loop {
        thread::sleep(Duration::from_millis(1));
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
}

#[expect(clippy::disallowed_methods, reason = "the clock is what the count is compared with")]
fn now() -> Instant {
    Instant::now()
}
