//! When a connection without replies is taken for dead.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::core::process::clock::Moment;

/// After this many unanswered calls in a row: the server may just be slow, and a new connection costs it more.
const LIMIT: u32 = 3;

/// After a rest this long, one call is enough: the process has slept, or something on the way, such as NAT, has
/// forgotten the connection. A busy connection never rests so long.
const REST: Duration = Duration::from_secs(5);

pub(super) struct Silence {
    unanswered: AtomicU32,
    last_call: AtomicU64,
}

impl Silence {
    pub(super) fn since(opened: Moment) -> Self {
        Self { unanswered: AtomicU32::new(0), last_call: AtomicU64::new(opened.as_nanos()) }
    }

    pub(super) fn call_begins(&self, now: Moment) {
        let last = Moment::from_nanos(self.last_call.load(Ordering::Relaxed));
        self.last_call.store(now.as_nanos(), Ordering::Relaxed);
        if now.since(last) >= REST {
            self.unanswered.store(LIMIT - 1, Ordering::Relaxed);
        }
    }

    pub(super) fn ends(&self) {
        self.unanswered.store(0, Ordering::Relaxed);
    }

    /// A call gave up; returns whether the connection is taken for dead.
    pub(super) fn call_gives_up(&self) -> bool {
        self.unanswered.fetch_add(1, Ordering::Relaxed) + 1 >= LIMIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Moment = Moment::from_nanos(7);

    #[test]
    fn three_calls_in_a_row_show_a_dead_connection() {
        let silence = Silence::since(START);
        silence.call_begins(START.after(REST / 2));
        assert!(!silence.call_gives_up() && !silence.call_gives_up() && silence.call_gives_up());
    }

    #[test]
    fn an_answer_in_between_shows_that_it_lives() {
        let silence = Silence::since(START);
        assert!(!silence.call_gives_up() && !silence.call_gives_up());
        silence.ends();
        assert!(!silence.call_gives_up());
    }

    #[test]
    fn after_a_rest_one_call_is_enough() {
        let silence = Silence::since(START);
        silence.call_begins(START.after(REST));
        assert!(silence.call_gives_up());
    }

    #[test]
    fn an_answer_after_the_rest_ends_the_doubt() {
        let silence = Silence::since(START);
        silence.call_begins(START.after(REST));
        silence.ends();
        silence.call_begins(START.after(REST + REST / 2));
        assert!(!silence.call_gives_up());
    }
}
