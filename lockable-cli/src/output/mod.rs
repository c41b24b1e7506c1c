//! What is written, for people and for programs.

pub(crate) mod escape;
pub(crate) mod facts;
pub(crate) mod json;
pub(crate) mod lock;
pub(crate) mod progress;
pub(crate) mod screen;
pub(crate) mod shell;
pub(crate) mod table;
pub(crate) mod times;

use std::io::{self, Write, stderr, stdout};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use self::escape::printable;

/// Writes a line to standard error. Where that cannot be written, nothing else can say so, and what was done counts.
pub(crate) fn write_error(line: &str) {
    writeln!(stderr(), "{line}").ok();
}

/// Writes to standard error what belongs to no result, and is no failure.
pub(crate) fn note(json: bool, note: &str) {
    let object = json.then(|| json::line(&Note { note }).ok()).flatten();
    write_error(&object.unwrap_or_else(|| format!("lockable: {}", printable(note))));
}

#[derive(Serialize)]
struct Note<'a> {
    note: &'a str,
}

/// Writes a line at once; `false` where that fails, as behind `head`, which reads no more.
pub(crate) fn write_line(line: &str) -> bool {
    write_bytes(format!("{line}\n").as_bytes())
}

/// As [`write_line`], but writes a text of several lines as it is.
pub(crate) fn write_bytes(text: &[u8]) -> bool {
    let mut output = stdout().lock();
    let written = output.write_all(text).and_then(|()| output.flush());
    let is_failure = |error: &io::Error| error.kind() != io::ErrorKind::BrokenPipe;
    if written.as_ref().is_err_and(is_failure) {
        HAS_FAILED.store(true, Ordering::Relaxed);
    }
    written.is_ok()
}

/// Whether a line could not be written that someone may read, as on a full disk.
pub(crate) fn has_failed() -> bool {
    HAS_FAILED.load(Ordering::Relaxed)
}

static HAS_FAILED: AtomicBool = AtomicBool::new(false);
