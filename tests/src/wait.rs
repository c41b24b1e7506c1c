//! Waiting for a state that has no event, always with a limit.
//!
//! A limit is a hang guard: so long that only what never comes reaches it, on any machine. How long something takes is
//! no claim of a test, but a row of `tests/timings`.

use std::env;
use std::panic::Location;
use std::pin::pin;
use std::sync::LazyLock;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// How long a test waits for what must come, before it says that it hangs.
pub const HANG: Duration = Duration::from_secs(120);

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
        let start = now();
        while !pin!(condition()).await {
            let is_over = is_over(start, limit);
            assert!(!is_over, "the condition of {caller} did not hold within {limit:?}");
            pause_async(start).await;
        }
    }
}

/// The output of a future that comes to an end; panics when it has not within [`HANG`].
///
/// The limit does not depend on tokio's clock, which may be paused.
///
/// # Cancel safety
///
/// That of the future.
#[track_caller]
pub fn ends<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let caller = Location::caller();
    async move {
        let (ended, end) = channel::<()>();
        let (hangs, hung) = oneshot::channel();
        thread::spawn(move || {
            if end.recv_timeout(at_most(HANG)) == Err(RecvTimeoutError::Timeout) {
                hangs.send(()).ok();
            }
        });
        let output = tokio::select! {
            biased;
            output = future => output,
            _ = hung => panic!("what {caller} waits for has not ended within {HANG:?}"),
        };
        drop(ended);
        output
    }
}

/// Blocks until `probe` finds something; `None` when it has not within `limit`.
pub(crate) fn poll<T>(limit: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let start = now();
    loop {
        match probe() {
            Some(found) => return Some(found),
            None if is_over(start, limit) => return None,
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

fn is_over(start: Instant, limit: Duration) -> bool {
    start.elapsed() >= at_most(limit)
}

/// The limit; less of it where bugs make tests hang on purpose, and the environment says so.
fn at_most(limit: Duration) -> Duration {
    static SHORTER: LazyLock<Option<Duration>> = LazyLock::new(|| {
        let seconds = env::var("LOCKABLE_HANG_SECONDS").ok()?;
        Some(Duration::from_secs(seconds.parse().expect("LOCKABLE_HANG_SECONDS is a number")))
    });
    SHORTER.map_or(limit, |shorter| limit.min(shorter))
}

#[expect(clippy::disallowed_methods, reason = "this module is for states that have no event")]
fn pause(start: Instant) {
    thread::sleep(interval(start));
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
