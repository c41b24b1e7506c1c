//! The lines of the run's own process.

use std::fmt::Arguments;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

#[derive(Debug)]
pub(crate) struct Record(File);

impl Record {
    pub(crate) fn create(folder: &Path) -> Self {
        Self(File::create(folder.join("history.run")).expect("a file can be made"))
    }

    pub(crate) fn write(&self, line: Arguments<'_>) {
        (&self.0).write_all(format!("{line}\n").as_bytes()).expect("a file can be written");
    }
}

/// The clock of all processes of this machine.
pub(crate) fn boot_time() -> u64 {
    let time: Duration = clock_gettime(ClockId::Boottime).try_into().expect("it is not negative");
    u64::try_from(time.as_nanos()).expect("the machine has not run for so long")
}
