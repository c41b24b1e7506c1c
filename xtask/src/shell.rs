//! Running other programs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};

use crate::workspace;

/// A cargo command at the root of the workspace.
///
/// It does not see the variables that cargo sets about this program's own package: build scripts watch
/// the same variables, and cargo would rebuild what depends on them after a cargo of the user's own.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = Command::new("cargo");
    let is_about_package =
        |name: &OsString| OWN.iter().any(|start| name.to_string_lossy().starts_with(start));
    for (name, _) in env::vars_os().filter(|(name, _)| is_about_package(name)) {
        cargo.env_remove(name);
    }
    cargo.args(arguments).current_dir(workspace::root());
    cargo
}

/// Whether a program is there and ends well.
pub(crate) fn answers(program: impl AsRef<OsStr>, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Runs a command whose output the user sees as it comes; `false` when it fails.
pub(crate) fn show(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}

/// Runs a command for its standard output. The error is everything that it said.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let [standard, _] = both(command)?;
    Ok(standard)
}

/// The same, for its standard error.
pub(crate) fn messages(command: &mut Command) -> Result<String, String> {
    let [_, error] = both(command)?;
    Ok(error)
}

fn both(command: &mut Command) -> Result<[String; 2], String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (standard, error) = (text(&output.stdout), text(&output.stderr));
    if output.status.success() {
        return Ok([standard, error]);
    }
    Err(format!("{command:?}\n{standard}{error}"))
}

/// How the names of those variables start.
const OWN: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];
