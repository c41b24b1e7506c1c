//! What only a nightly rustdoc does, with the pinned toolchain: JSON, and the badges of features.
//!
//! Cargo starts this program in the place of rustdoc, which gets `RUSTC_BOOTSTRAP` from it. Only rustdoc gets
//! the variable: build scripts watch it, and cargo would rebuild all dependencies.

use std::env;
use std::process::Command;

use crate::shell;

/// Lets rustdoc do what is not stable in a cargo command.
pub(crate) fn unstable(cargo: &mut Command) -> Result<&mut Command, String> {
    let this = env::current_exe().map_err(|error| error.to_string())?;
    Ok(cargo.env("RUSTDOC", this).env(AS_RUSTDOC, "1"))
}

/// Whether cargo started this program in the place of rustdoc.
pub(crate) fn is_this() -> bool {
    env::var_os(AS_RUSTDOC).is_some()
}

/// Writes the pages of a crate; for the one whose public API is a list, its JSON too.
pub(crate) fn run() -> bool {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let rustdoc = |more: &[&str]| {
        let mut rustdoc = Command::new("rustdoc");
        shell::show(rustdoc.args(&arguments).args(more).env("RUSTC_BOOTSTRAP", "1"))
    };
    let is_listed = arguments.windows(2).any(|pair| pair == ["--crate-name", LISTED]);
    rustdoc(&[]) && (!is_listed || rustdoc(&["-Zunstable-options", "--output-format", "json"]))
}

/// Where the JSON is, below the folder of the documentation.
pub(crate) const JSON: &str = "lockable_runtime.json";

const LISTED: &str = "lockable_runtime";

const AS_RUSTDOC: &str = "LOCKABLE_XTASK_AS_RUSTDOC";
