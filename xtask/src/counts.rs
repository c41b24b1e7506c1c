//! `cargo xtask counts`: what an acquire and its release take, in counts, beside the table of the benches.

use std::process::Command;

use crate::check::Outcome;
use crate::{apt, redis, shell};

pub(crate) const USAGE: &str = "counts [--write]";

/// `--write` writes the table of this server again.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> Result<bool, String> {
    prepare()?;
    Ok(shell::show(program().args(arguments)))
}

/// Its last line says what could be compared here.
pub(crate) fn check() -> Result<Outcome, String> {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Skipped("valgrind and strace count on Linux alone".to_owned()));
    }
    prepare()?;
    let report = shell::output(&mut program())?;
    Ok(Outcome::Passed(report.lines().last().unwrap_or_default().to_owned()))
}

fn program() -> Command {
    shell::cargo(&[
        "run",
        "--quiet",
        "--release",
        "-p",
        "lockable-benches",
        "--bin",
        "counts",
        "--",
    ])
}

fn prepare() -> Result<(), String> {
    redis::prepare()?;
    ["valgrind", "strace"].into_iter().try_for_each(|tool| {
        let is_there = || shell::answers(tool, &["--version"]);
        let is_ready = is_there() || (apt::install(tool) && is_there());
        is_ready.then_some(()).ok_or_else(|| format!("`{tool}` was not found"))
    })
}
