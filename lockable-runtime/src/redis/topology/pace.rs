//! When the nodes are asked for their slots: one query at a time.

use std::mem;
use std::time::Duration;

use tokio::sync::watch;

use crate::core::backend::Fault;
use crate::core::process::clock::{Moment, boot_time};
use crate::core::process::mutex::Mutex;

/// Two queries are at least this far apart.
const PAUSE: Duration = Duration::from_millis(100);

/// The pause doubles with each answer without news, up to this: a hanging node makes every process ask. A failover is
/// found within that time.
const LONGEST_PAUSE: Duration = Duration::from_millis(400);

#[derive(Default)]
pub(super) struct Pace {
    state: Mutex<Pacing>,
    /// How many queries have ended, and the last one's fault.
    pub(super) ended: watch::Sender<(u64, Option<Fault>)>,
}

#[derive(Default)]
struct Pacing {
    is_running: bool,
    is_needed: bool,
    asked: Moment,
    pause: Duration,
}

impl Pace {
    /// Requests an answer. Returns whether the caller starts the task that asks.
    #[must_use = "a task may have to be started"]
    pub(super) fn need(&self) -> bool {
        let mut state = self.state.lock();
        state.is_needed = true;
        // A new trouble, a while after the last one.
        if !state.is_running && boot_time().since(state.asked) > LONGEST_PAUSE {
            state.pause = PAUSE;
        }
        !mem::replace(&mut state.is_running, true)
    }

    /// Starts the next query; returns the pause before it.
    pub(super) fn begin(&self) -> Duration {
        let mut state = self.state.lock();
        let now = boot_time();
        let pause = state.pause.saturating_sub(now.since(state.asked));
        (state.is_needed, state.asked) = (false, now.after(pause));
        pause
    }

    /// Ends a query. Returns whether another was requested since; if not, the task ends.
    pub(super) fn is_needed(&self, has_news: bool) -> bool {
        let mut state = self.state.lock();
        let next = if has_news { PAUSE } else { 2 * state.pause };
        state.pause = next.clamp(PAUSE, LONGEST_PAUSE);
        state.is_running = state.is_needed;
        state.is_running
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nodes_are_asked_again_only_where_that_was_needed_since() {
        let pace = Pace::default();
        assert!(pace.need());
        assert!(!pace.need(), "a task asks already");
        pace.begin();
        assert!(!pace.is_needed(true), "what was needed before is answered");
        assert!(pace.need(), "that task has ended");
        pace.begin();
        assert!(!pace.need());
        assert!(pace.is_needed(true), "the task asks again");
        pace.begin();
        assert!(!pace.is_needed(false));
    }

    /// A failover after a long time without news is found as fast as any other.
    #[test]
    fn the_pause_between_two_queries_has_a_limit() {
        let pace = Pace::default();
        for _ in 0..10 {
            assert!(pace.need());
            assert!(pace.begin() <= LONGEST_PAUSE);
            assert!(!pace.is_needed(false));
        }
    }
}
