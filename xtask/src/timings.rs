//! `cargo xtask timings`: how long things take, alone on this machine.
//!
//! See "Why is a bound on time no test?" in DESIGN.md.

use crate::{redis, shell};

pub(crate) const USAGE: &str = "timings [GROUP]";

/// All groups of rows, or those with that in their names.
pub(crate) fn run(names: impl Iterator<Item = String>) -> Result<bool, String> {
    redis::prepare()?;
    shell::output(&mut shell::cargo(&["build", "-p", "lockable-cli"]))?;
    // In the profile of the tests, which have built most of it.
    let bench = ["bench", "--profile", "dev", "-p", "lockable-tests", "--bench", "timings", "--"];
    Ok(shell::show(shell::cargo(&bench).args(names)))
}
