//! `cargo xtask pictures`: draws the pictures of the documentation, with the data beside each.

use crate::{apt, redis, shell};

pub(crate) const USAGE: &str = "pictures [ls | lease | failover | board]";

/// All of them, or those of these names.
pub(crate) fn run(names: impl Iterator<Item = String>) -> Result<bool, String> {
    let names: Vec<_> = names.collect();
    redis::prepare()?;
    if names.is_empty() || names.iter().any(|name| name == BOARD) {
        prepare_board()?;
    }
    let arguments = ["run", "--quiet", "-p", "lockable-pictures", "--"];
    Ok(shell::show(shell::cargo(&arguments).args(names)))
}

/// The dashboard is drawn over the data of an example, in the Prometheus of the system's packages.
fn prepare_board() -> Result<(), String> {
    let is_there = || shell::answers("prometheus", &["--version"]);
    let is_ready = is_there() || (apt::install("prometheus") && is_there());
    if !is_ready {
        return Err("`prometheus` was not found; install the package prometheus".to_owned());
    }
    let example =
        ["build", "--quiet", "-p", "lockable-examples-services", "--example", "prometheus"];
    shell::output(&mut shell::cargo(&example)).map(drop)
}

const BOARD: &str = "board";
