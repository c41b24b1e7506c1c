//! What the tests here share.

use std::time::{Duration, Instant};

/// How long a test waits for an event that must come.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// A lease that no test outlives.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// How long a server may take for an answer, which a machine that stalls takes too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

#[expect(clippy::disallowed_methods, reason = "servers and processes run in real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
