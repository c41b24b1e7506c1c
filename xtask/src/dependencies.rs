//! What the published crates may depend on.

use std::collections::BTreeSet;

use crate::check::Outcome;
use crate::shell;

/// How many crates a user of the runtime builds.
pub(crate) fn budget() -> Outcome {
    tree("lockable-runtime", &[]).and_then(|crates| within_budget(crates.len())).into()
}

/// The macro crate is compiled by everybody, before everything else.
pub(crate) fn macros() -> Outcome {
    tree("lockable-macros", &["--depth", "1"]).and_then(|crates| only_allowed(&crates)).into()
}

fn within_budget(count: usize) -> Result<String, String> {
    let size = format!("{count} crates of {CRATE_LIMIT}");
    if count <= CRATE_LIMIT { Ok(size) } else { Err(size) }
}

fn only_allowed(crates: &BTreeSet<String>) -> Result<String, String> {
    let names = crates.iter().filter_map(|name| name.split(' ').next());
    let names: Vec<_> = names.filter(|name| *name != "lockable-macros").collect();
    if names == MACRO_DEPENDENCIES { Ok(String::new()) } else { Err(names.join(", ")) }
}

/// The crates of a dependency tree, each once, with its own package among them.
fn tree(package: &str, more: &[&str]) -> Result<BTreeSet<String>, String> {
    let arguments = ["tree", "-p", package, "-e", "normal", "--prefix", "none", "--format", "{p}"];
    let lines = shell::output(shell::cargo(&arguments).args(more))?;
    Ok(lines.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect())
}

const CRATE_LIMIT: usize = 75;

const MACRO_DEPENDENCIES: [&str; 3] = ["proc-macro2", "quote", "syn"];
