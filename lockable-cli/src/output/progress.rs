//! How far a listing is, for someone who waits at a terminal.

use std::io::{self, IsTerminal, Write, stderr};
use std::time::Duration;

use tokio::time::Instant;

/// A line on standard error that is written again and again, and is gone at the end.
pub(crate) struct Progress {
    is_seen: bool,
    begun: Instant,
    /// How many keys there are, as far as is known.
    of: u64,
    is_written: bool,
}

impl Progress {
    pub(crate) fn new(of: u64) -> Self {
        Self { is_seen: stderr().is_terminal(), begun: Instant::now(), of, is_written: false }
    }

    /// When to write how far it is.
    pub(crate) async fn due(&self) {
        if !self.is_seen {
            return std::future::pending().await;
        }
        tokio::time::sleep_until((Instant::now() + STEP).max(self.begun + SILENCE)).await;
    }

    pub(crate) fn write(&mut self, scanned: u64) {
        self.is_written = true;
        unheard(write!(stderr(), "\r{}{CLEAR}", words(scanned, self.of)));
    }

    /// Leaves the line to what is written next.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_written) {
            unheard(write!(stderr(), "\r{CLEAR}"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

pub(crate) fn words(scanned: u64, of: u64) -> String {
    // Keys come and go meanwhile, and a cluster scans the slots that have moved again.
    match scanned.saturating_mul(100).checked_div(of) {
        Some(percent) => format!("{}% of {of} keys scanned", percent.min(99)),
        None => format!("{scanned} keys scanned"),
    }
}

/// Where the terminal is gone, no one reads it.
fn unheard(written: io::Result<()>) {
    written.ok();
}

/// A short listing needs no such line.
const SILENCE: Duration = Duration::from_secs(1);

const STEP: Duration = Duration::from_millis(250);

/// Deletes the rest of the line.
const CLEAR: &str = "\u{1b}[K";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_done_only_at_its_end() {
        assert_eq!(words(500, 2_000), "25% of 2000 keys scanned");
        assert_eq!(words(2_500, 2_000), "99% of 2000 keys scanned");
        assert_eq!(words(250, 0), "250 keys scanned");
    }
}
