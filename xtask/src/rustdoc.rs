//! What only a nightly rustdoc does, with the pinned toolchain: JSON, and the badges of features.
//!
//! Cargo starts this program in the place of rustdoc, which gets `RUSTC_BOOTSTRAP` from it. Only rustdoc gets
//! the variable: build scripts watch it, and cargo would rebuild all dependencies.

use std::env;
use std::ffi::OsString;
use std::process::Command;

use crate::{shell, workspace};

/// Lets a cargo command write the pages as docs.rs does, without a warning.
pub(crate) fn as_on_docs_rs(cargo: &mut Command) -> Result<&mut Command, String> {
    let this = env::current_exe().map_err(|error| error.to_string())?;
    cargo.env("RUSTDOCFLAGS", "-D warnings --cfg docsrs");
    Ok(cargo.env("RUSTDOC", this).env(AS_RUSTDOC, "1"))
}

/// Whether cargo started this program in the place of rustdoc.
pub(crate) fn is_this() -> bool {
    env::var_os(AS_RUSTDOC).is_some()
}

/// Writes the pages of a crate, after its examples have run, where these are what cargo asks for; for the crate whose
/// public API is a list, its JSON too.
///
/// So the pages take nothing that the examples have not built: cargo's own command would compile all that the workspace
/// depends on once more.
pub(crate) fn run() -> bool {
    let mut arguments: Vec<_> = env::args_os().skip(1).collect();
    let rustdoc = |arguments: &[OsString], more: &[&str]| {
        let mut rustdoc = Command::new("rustdoc");
        shell::show(rustdoc.args(arguments).args(more).env("RUSTC_BOOTSTRAP", "1"))
    };
    if let Some(place) = arguments.iter().position(|argument| argument == "--test") {
        if !rustdoc(&arguments, &[]) {
            return false;
        }
        arguments.remove(place);
        let folder = arguments.iter().position(|argument| argument == "--test-run-directory");
        if let Some(place) = folder {
            arguments.drain(place..place + 2);
        }
        arguments.extend(["--out-dir".into(), workspace::target().join("doc").into()]);
    }
    let is_listed = arguments.windows(2).any(|pair| pair == ["--crate-name", LISTED]);
    rustdoc(&arguments, &[])
        && (!is_listed || rustdoc(&arguments, &["-Zunstable-options", "--output-format", "json"]))
}

/// Where the JSON is, below the folder of the documentation.
pub(crate) const JSON: &str = "lockable_runtime.json";

const LISTED: &str = "lockable_runtime";

const AS_RUSTDOC: &str = "LOCKABLE_XTASK_AS_RUSTDOC";
