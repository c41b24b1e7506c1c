//! `cargo xtask operations`: listing, revoking and running programs under locks, as often as shows a rare failure.

use crate::shell;

pub(crate) fn run() -> bool {
    let packages = ["-p", "lockable-tests", "-p", "lockable-cli"];
    let tests = ["--test", "operations", "--test", "cli", "--no-fail-fast"];
    let mut cargo = shell::cargo(&["test"]);
    shell::show(cargo.args(packages).args(tests).env("LOCKABLE_LONG_FORM", "1"))
}
