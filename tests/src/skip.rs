//! What cannot be tested on this machine.

use std::io::{Write, stderr};

/// Says what is not tested here, and why. A test runner shows what tests print only where they fail; this comes past
/// it.
pub(crate) fn say(what: &str) {
    drop(writeln!(stderr(), "SKIPPED: {what}"));
}
