//! The calendar of a server, which a test can set.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use crate::{preload, skip};

const SOURCE: &str = include_str!("clock.c");

const LIBRARY: &str = "clock.so";
const OFFSET: &str = "clock.offset";

/// Whether a server's clock can be set here: on Linux, where there is a C compiler. Prints a line where
/// it cannot.
pub fn can_be_set() -> bool {
    let is_possible = preload::is_possible();
    if !is_possible {
        skip::say("a server's clock, which can be set on Linux with a C compiler, `cc`, only");
    }
    is_possible
}

/// Makes what is preloaded into the server of this directory, unless that is there.
pub(crate) fn prepare(directory: &Path) {
    if let Err(error) = fs::metadata(directory.join(LIBRARY))
        && error.kind() == ErrorKind::NotFound
    {
        set(directory, 0);
        preload::compile(SOURCE, &directory.join(LIBRARY));
    }
}

/// Lets the server of this directory run with it.
pub(crate) fn preload(command: &mut Command, directory: &Path) {
    command.env("LD_PRELOAD", directory.join(LIBRARY));
    command.env("CLOCK_OFFSET", directory.join(OFFSET));
}

/// Puts the server's clock ahead of the machine's by that, or back where it is less than zero.
pub(crate) fn set(directory: &Path, micros: i64) {
    write(directory, [micros, 0]);
}

/// Stops the server's clock at that many microseconds since 1970.
pub(crate) fn stop(directory: &Path, micros: i64) {
    write(directory, [0, micros]);
}

/// In place, because the server has mapped the file.
fn write(directory: &Path, numbers: [i64; 2]) {
    let mut options = fs::File::options();
    let file = options.create(true).truncate(false).write(true).open(directory.join(OFFSET));
    let written =
        file.and_then(|file| file.write_all_at(&numbers.map(i64::to_ne_bytes).concat(), 0));
    written.expect("the file can be written");
}
