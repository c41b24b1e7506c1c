//! `cargo xtask test`: everything that a fresh machine needs, and then the tests.

use std::path::Path;
use std::process::ExitCode;

use crate::check::{self, Needs};
use crate::lint::CHECKS;
use crate::{python, redis, shell};

/// The tests come last, so that their summary is the end of the output.
pub(crate) fn run() -> ExitCode {
    let python = match redis::prepare().and_then(|()| python::prepare()) {
        Ok(python) => python,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::FAILURE;
        }
    };
    let are_checks_ok = check::run_all(CHECKS, |check| check.needs == Needs::Toolchain);
    let are_tests_ok = run_tests(&python);
    if are_checks_ok && are_tests_ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_tests(python: &Path) -> bool {
    let mut cargo = shell::cargo(&["test", "--workspace", "--all-features"]);
    shell::show(cargo.env("LOCKABLE_PYTHON", python))
}
