//! Waiting for a state that has no event, always with a limit.
//!
//! A limit counts the time that the machine gives to this process, so a machine that stalls ends no wait early. It is
//! for what never comes; what has to come soon is measured by the test itself.

use std::panic::Location;
use std::pin::pin;
use std::time::{Duration, Instant};

use crate::Pace;

/// Blocks until `condition` holds, and panics when it does not within `limit`.
///
/// The panic is reported at the caller's line. In an async test on one thread use [`until_async`],
/// which lets the test's other tasks run.
#[track_caller]
pub fn until(limit: Duration, mut condition: impl FnMut() -> bool) {
    let held = poll(limit, || condition().then_some(()));
    assert!(held.is_some(), "the condition did not hold within {limit:?}");
}

/// Waits until `condition` holds, and panics when it does not within `limit`.
///
/// The limit does not depend on tokio's clock, which may be paused.
///
/// # Cancel safety
///
/// It changes nothing, so it can be dropped at any point.
#[track_caller]
pub fn until_async(
    limit: Duration,
    mut condition: impl AsyncFnMut() -> bool,
) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        let (start, pace) = (now(), Pace::start());
        while !pin!(condition()).await {
            let is_over = is_over(start, pace, limit);
            assert!(!is_over, "the condition of {caller} did not hold within {limit:?}");
            pause_async(start).await;
        }
    }
}

/// Blocks until `probe` finds something; `None` when it has not within `limit`.
pub(crate) fn poll<T>(limit: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let (start, pace) = (now(), Pace::start());
    loop {
        match probe() {
            Some(found) => return Some(found),
            None if is_over(start, pace, limit) => return None,
            None => pause(start),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the pauses of a wait grow with the time that has passed"
)]
fn now() -> Instant {
    Instant::now()
}

/// No machine stalls for most of the time, and a process that was forked has no pace.
fn is_over(start: Instant, pace: Pace, limit: Duration) -> bool {
    pace.elapsed() >= limit || start.elapsed() >= 8 * limit
}

#[expect(clippy::disallowed_methods, reason = "this module is for states that have no event")]
fn pause(start: Instant) {
    std::thread::sleep(interval(start));
}

#[expect(clippy::disallowed_methods, reason = "this module is for states that have no event")]
async fn pause_async(start: Instant) {
    tokio::time::sleep(interval(start)).await;
}

/// A small part of what has passed: what comes soon is seen at once, and a long wait leaves the processor to
/// what it waits for.
fn interval(start: Instant) -> Duration {
    (start.elapsed() / 16).clamp(SHORTEST, LONGEST)
}

/// Long beside a command to the server.
const SHORTEST: Duration = Duration::from_millis(2);

/// Short beside every limit, and beside what a test lets pass after the wait.
const LONGEST: Duration = Duration::from_millis(20);
