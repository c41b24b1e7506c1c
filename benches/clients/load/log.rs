//! What the tasks write down, and a thread that writes it out while they run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::monotonic;

/// What was not written out yet.
#[derive(Default)]
pub(super) struct Log(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    /// How many pairs of a group succeeded in a millisecond.
    successes: BTreeMap<(usize, u64), usize>,
    failures: String,
}

impl Log {
    /// With a thread, and no task of the runtime: a client that stands still must not stop it.
    pub(super) fn start() -> Arc<Self> {
        let log = Arc::<Self>::default();
        let written = Arc::clone(&log);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(PERIOD);
                written.write(".");
            }
        });
        log
    }

    pub(super) fn succeeded(&self, group: usize) {
        let at = millis();
        self.with(|entries| *entries.successes.entry((group, at)).or_default() += 1);
    }

    pub(super) fn failed(&self, group: usize, key: &str, reason: &str) {
        let at = millis();
        self.with(|entries| writeln!(entries.failures, "! {group} {at} {key} {reason}").ok());
    }

    /// Writes out what there is, and then a line.
    pub(super) fn write(&self, last: &str) {
        let Entries { successes, mut failures } = self.with(std::mem::take);
        for ((group, at), count) in successes {
            writeln!(failures, "+ {group} {at} {count}").ok();
        }
        // The process that reads it may be gone: then this one ends too.
        writeln!(io::stdout(), "{failures}{last}").ok();
    }

    fn with<T>(&self, change: impl FnOnce(&mut Entries) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn millis() -> u64 {
    monotonic() / 1_000_000
}

const PERIOD: Duration = Duration::from_millis(50);
