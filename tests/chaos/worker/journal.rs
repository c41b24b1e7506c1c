//! The lines of a process, each written at once, so that a kill cuts off none that is finished.

use std::fmt::Arguments;
use std::fs::File;
use std::io::Write;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

#[derive(Clone)]
pub(crate) struct Journal(Arc<Inner>);

struct Inner {
    file: File,
    waits: AtomicU64,
}

impl Journal {
    pub(crate) fn open(path: &str) -> Self {
        let file = File::options().create(true).append(true).open(path).unwrap();
        Self(Arc::new(Inner { file, waits: AtomicU64::new(0) }))
    }

    pub(crate) fn write(&self, line: Arguments<'_>) {
        (&self.0.file).write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// A call begins to wait for a lock; what it returns ends that.
    pub(crate) fn wait(&self, key: &str) -> Waiting {
        self.begin("wait", key)
    }

    /// A call for several locks begins, of which this is one; what it returns ends that.
    pub(crate) fn part(&self, key: &str) -> Waiting {
        self.begin("part", key)
    }

    fn begin(&self, word: &'static str, key: &str) -> Waiting {
        let number = self.0.waits.fetch_add(1, Ordering::Relaxed);
        let (journal, key, begin) = (self.clone(), key.to_owned(), boot_time());
        let waiting = Waiting { journal, word, number, key, begin };
        waiting.write(0);
        waiting
    }
}

/// A call that waits.
pub(crate) struct Waiting {
    journal: Journal,
    word: &'static str,
    number: u64,
    key: String,
    begin: u64,
}

impl Waiting {
    fn write(&self, end: u64) {
        let Self { word, number, key, begin, .. } = self;
        let pid = process::id();
        self.journal.write(format_args!("{word} {pid} {number} {key} {begin} {end}"));
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.write(boot_time());
    }
}

/// The clock of all processes of this machine.
pub(crate) fn boot_time() -> u64 {
    let time: Duration = clock_gettime(ClockId::Boottime).try_into().unwrap();
    u64::try_from(time.as_nanos()).unwrap()
}
