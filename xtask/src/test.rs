//! `cargo xtask test`: everything that a fresh machine needs, and then the tests.

use std::path::Path;

use crate::check::{self, Needs};
use crate::lint::CHECKS;
use crate::{python, redis, shell};

/// The tests come last, so that their summary is the end of the output.
pub(crate) fn run() -> Result<bool, String> {
    redis::prepare()?;
    let python = python::prepare()?;
    let are_checks_ok = check::run_all(CHECKS, |check| check.needs == Needs::Toolchain);
    let are_tests_ok = run_tests(&python);
    Ok(are_checks_ok && are_tests_ok)
}

fn run_tests(python: &Path) -> bool {
    let mut cargo = shell::cargo(&["test", "--workspace", "--all-features"]);
    shell::show(cargo.env("LOCKABLE_PYTHON", python))
}
