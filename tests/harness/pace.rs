//! The pace falls behind the clock, and is never ahead of it.

use std::time::{Duration, Instant};

use lockable_tests::{Pace, wait};

#[test]
fn the_pace_is_never_ahead_of_the_clock() {
    let start = now();
    let pace = Pace::start();
    wait::until(Duration::from_secs(10), || {
        let (counted, passed) = (pace.elapsed(), start.elapsed());
        assert!(counted <= passed, "{counted:?} of {passed:?}");
        counted > Duration::from_millis(100)
    });
    assert!(pace.elapsed() + pace.lag() <= start.elapsed());
}

#[expect(clippy::disallowed_methods, reason = "the clock is what the pace is compared with")]
fn now() -> Instant {
    Instant::now()
}
