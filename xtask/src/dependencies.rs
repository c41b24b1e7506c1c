//! What the published crates may depend on.

use std::collections::BTreeSet;

use crate::check::Outcome;
use crate::shell;

/// How many crates a user of the runtime builds.
pub(crate) fn budget() -> Result<Outcome, String> {
    let count = tree("lockable-runtime", &[])?.len();
    let size = format!("{count} crates of {CRATE_LIMIT}");
    if count <= CRATE_LIMIT { Ok(Outcome::Passed(size)) } else { Err(size) }
}

/// Every user compiles the macro crate, before everything else.
pub(crate) fn macros() -> Result<Outcome, String> {
    let crates = tree("lockable-macros", &["--depth", "1"])?;
    let names = crates.iter().filter_map(|name| name.split(' ').next());
    let names: Vec<_> = names.filter(|name| *name != "lockable-macros").collect();
    if names == MACRO_DEPENDENCIES { Ok(Outcome::passed()) } else { Err(names.join(", ")) }
}

/// The crates of a dependency tree, each once, with its own package among them.
fn tree(package: &str, more: &[&str]) -> Result<BTreeSet<String>, String> {
    let arguments = ["tree", "-p", package, "-e", "normal", "--prefix", "none", "--format", "{p}"];
    let lines = shell::output(shell::cargo(&arguments).args(more))?;
    Ok(lines.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect())
}

const CRATE_LIMIT: usize = 75;

const MACRO_DEPENDENCIES: [&str; 3] = ["proc-macro2", "quote", "syn"];
