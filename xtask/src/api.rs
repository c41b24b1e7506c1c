//! The public API of `lockable-runtime` as a list, one line for each item, which a change has to touch.
//!
//! See "Why is the public API a committed list?" in DESIGN.md.
#![expect(clippy::indexing_slicing, reason = "what is not in a JSON value is null, and no panic")]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::{env, fs};

use serde_json::Value;

use crate::check::Outcome;
use crate::{shell, workspace};

mod items;
mod types;

/// Fails with the difference when the list is not what the code says.
pub(crate) fn check() -> Outcome {
    let listed = fs::read_to_string(file()).unwrap_or_default();
    generated().and_then(|actual| compare(&listed, &actual)).into()
}

/// `cargo xtask api`: writes the list anew.
pub(crate) fn write() -> ExitCode {
    let written = generated().and_then(|list| {
        fs::write(file(), &list).map_err(|error| error.to_string())?;
        Ok(format!("{} lines in {}", list.lines().count(), file().display()))
    });
    match written {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

/// Whether cargo started this program in the place of rustdoc.
pub(crate) fn is_rustdoc() -> bool {
    env::var_os(AS_RUSTDOC).is_some()
}

/// Runs rustdoc, which gives its JSON to nightly toolchains only, and to those that pretend to be one.
///
/// For rustdoc alone: build scripts look at the same variable, and everything would be built anew.
pub(crate) fn run_as_rustdoc(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let mut rustdoc = Command::new("rustdoc");
    let is_done = shell::show(rustdoc.args(arguments).env("RUSTC_BOOTSTRAP", "1"));
    if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn generated() -> Result<String, String> {
    let documentation = documentation()?;
    match documentation["format_version"].as_u64() {
        Some(FORMAT) => Ok(items::list(&documentation)),
        found => Err(format!(
            "rustdoc's JSON has version {found:?} and xtask/src/api reads {FORMAT}: see what has \
             changed in it"
        )),
    }
}

/// What rustdoc knows of the crate, with all features and without what is hidden.
fn documentation() -> Result<Value, String> {
    let this = env::current_exe().map_err(|error| error.to_string())?;
    let arguments = ["rustdoc", "--package", "lockable-runtime", "--lib", "--all-features"];
    let mut cargo = shell::cargo(&arguments);
    cargo.args(["--", "-Z", "unstable-options", "--output-format", "json"]);
    shell::output(cargo.env("RUSTDOC", this).env(AS_RUSTDOC, "1"))?;
    let json = workspace::target().join("doc/lockable_runtime.json");
    let text = fs::read(json).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}

fn compare(listed: &str, actual: &str) -> Result<String, String> {
    let (before, after): (BTreeSet<_>, BTreeSet<_>) =
        (listed.lines().collect(), actual.lines().collect());
    let gone = before.difference(&after).map(|line| format!("- {line}"));
    let new = after.difference(&before).map(|line| format!("+ {line}"));
    let changes: Vec<_> = gone.chain(new).collect();
    if changes.is_empty() {
        return Ok(format!("{} lines", after.len()));
    }
    Err(format!("{}\nrun `cargo xtask api` and commit its list", changes.join("\n")))
}

fn file() -> PathBuf {
    workspace::root().join("lockable-runtime/public-api.txt")
}

const AS_RUSTDOC: &str = "LOCKABLE_XTASK_AS_RUSTDOC";

/// The version of the JSON that the pinned toolchain writes.
const FORMAT: u64 = 57;

#[cfg(test)]
mod tests {
    use super::compare;

    #[test]
    fn a_difference_tells_both_sides_and_what_to_run() {
        assert_eq!(compare("a\nb\n", "b\na\n").unwrap(), "2 lines");
        let report = compare("a\nb\n", "b\nc\n").unwrap_err();
        assert_eq!(report, "- a\n+ c\nrun `cargo xtask api` and commit its list");
    }
}
