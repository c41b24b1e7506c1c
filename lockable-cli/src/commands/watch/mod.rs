//! `--watch`: looks again and again, and shows what is different.
//!
//! See "How does a listing or a watch spare the server (`SCAN`)?" in DESIGN.md.

mod history;
mod listing;
mod lock;
mod view;

use std::future::Future;
use std::time::Duration;

pub(super) use self::listing::listing;
pub(super) use self::lock::lock;

use crate::arguments::Span;
use crate::failure::Failure;
use crate::output::screen::Screen;

/// Does the work until its end, or until Ctrl-C, which is how a watch is meant to end.
pub(super) async fn until_interrupted(
    work: impl Future<Output = Result<u8, Failure>>,
) -> Result<u8, Failure> {
    tokio::select! {
        biased;
        ended = work => ended,
        () = interrupt() => {
            Screen::leave();
            Ok(0)
        }
    }
}

/// Without a handler the signal ends this process as it ends any other.
async fn interrupt() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// # Errors
/// When no one could read what changes so fast.
pub(super) fn check_pause(pause: Span) -> Result<Duration, Failure> {
    if pause.0 < SHORTEST {
        return Err(Failure::usage("--watch must be at least 100ms"));
    }
    Ok(pause.0)
}

/// The pause behind a snapshot that took so long: a snapshot takes a fifth of the server's time at most, as a listing does.
fn pause_after(took: Duration, pause: Duration) -> Duration {
    pause.max(took.saturating_mul(4).min(LONGEST))
}

const SHORTEST: Duration = Duration::from_millis(100);

/// What takes longer is no work of the server's.
const LONGEST: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_server_rests_for_four_times_as_long_as_a_look_took() {
        let [tenth, second] = [100, 1_000].map(Duration::from_millis);
        assert_eq!(pause_after(Duration::ZERO, tenth), tenth);
        assert_eq!(pause_after(second, tenth), 4 * second);
        assert_eq!(pause_after(60 * second, tenth), LONGEST);
    }
}
