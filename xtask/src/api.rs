//! The public API of `lockable-runtime` as a list, one line for each item, which a change has to touch.
//!
//! See "Why is the public API a committed list?" in DESIGN.md.

use std::collections::{BTreeSet, HashSet};
use std::fs;

use public_api::{Builder, PublicApi, PublicItem};

use crate::check::Outcome;
use crate::{lint, rustdoc, workspace};

/// Fails with the difference when the list is not what the code says, of which the check before this one has made
/// the documentation.
pub(crate) fn check() -> Result<Outcome, String> {
    compare(&workspace::read(LIST)?, &generated()?)
}

/// `cargo xtask api`: writes the list again.
pub(crate) fn write() -> Result<bool, String> {
    lint::document(&["--package", "lockable-runtime"])?;
    let list = generated()?;
    fs::write(workspace::root().join(LIST), &list).map_err(|error| format!("{LIST}: {error}"))?;
    println!("{} lines in {LIST}", list.lines().count());
    Ok(true)
}

fn generated() -> Result<String, String> {
    let source = workspace::read("lockable-runtime/src/lib.rs")?;
    let lines = items(&public_api()?).into_iter().chain(options(&source));
    Ok(lines.map(|line| line + "\n").collect())
}

/// What is public with all features, without the items under `#[doc(hidden)]`.
fn public_api() -> Result<PublicApi, String> {
    let json = workspace::target().join("doc").join(rustdoc::JSON);
    let api = Builder::from_rustdoc_json(json);
    let api = api.omit_blanket_impls(true).include_function_parameter_names(true).build();
    api.map_err(|error| {
        format!("{error}: does `public-api` in xtask/Cargo.toml fit the toolchain?")
    })
}

/// The items in the order of `public-api`, which puts what belongs to a type after it.
///
/// The implementation of a trait is one line: its methods follow from the trait.
fn items(api: &PublicApi) -> Vec<String> {
    let implementations = api.items().filter(|item| is_implementation(&item.to_string()));
    let implementations: HashSet<_> = implementations.map(PublicItem::id).collect();
    let of_trait = |item: &&PublicItem| {
        item.parent_id().is_some_and(|parent| implementations.contains(&parent))
            && item.to_string().starts_with("pub fn")
    };
    let items = api.items().filter(|item| !of_trait(item));
    items.map(ToString::to_string).filter(|line| !is_noise(line)).collect()
}

fn is_implementation(line: &str) -> bool {
    line.starts_with("impl") && line.contains(" for ")
}

/// Whether a line says nothing that a user's code may depend on.
fn is_noise(line: &str) -> bool {
    NOISE.iter().any(|noise| line.contains(noise))
}

/// The options of the attribute and their defaults, which its documentation lists in a table.
fn options(source: &str) -> Vec<String> {
    let documentation = source.lines().filter_map(|line| line.strip_prefix("/// "));
    let section = documentation.skip_while(|line| *line != "# Options").skip(1);
    let rows = section.take_while(|line| !line.starts_with("# "));
    rows.filter_map(option).collect()
}

fn option(row: &str) -> Option<String> {
    let row = row.strip_prefix("| `")?.trim_end_matches('|').replace("\\|", "|");
    let (option, rest) = row.split_once(" | ")?;
    let (_, default) = rest.rsplit_once(" | ")?;
    let line = format!("#[distributed_lock] `{option}, default: {default}");
    Some(line.trim_end().to_owned())
}

fn compare(listed: &str, actual: &str) -> Result<Outcome, String> {
    let (before, after): (BTreeSet<_>, BTreeSet<_>) =
        (listed.lines().collect(), actual.lines().collect());
    let gone = before.difference(&after).map(|line| format!("- {line}"));
    let new = after.difference(&before).map(|line| format!("+ {line}"));
    let changes: Vec<_> = gone.chain(new).collect();
    if changes.is_empty() {
        return Ok(Outcome::Passed(format!("{} lines", after.len())));
    }
    Err(format!("{}\nrun `cargo xtask api` and commit its list", changes.join("\n")))
}

const LIST: &str = "lockable-runtime/public-api.txt";

/// Traits of the compiler's own, a type that changes with the version of pin-project-lite, the traits
/// that only expanded code names, and the pages of the guide, which only the documentation has.
const NOISE: [&str; 7] = [
    "Freeze for ",
    "StructuralPartialEq for ",
    "UnsafeUnpin for ",
    "UnwindSafe for ",
    "__pin",
    "lockable_runtime::attribute::",
    "pub mod lockable_runtime::guide",
];

#[cfg(test)]
mod tests {
    use super::{compare, options};

    #[test]
    fn a_difference_shows_both_sides_and_the_command() {
        assert!(compare("a\nb\n", "b\na\n").is_ok());
        let report = compare("a\nb\n", "b\nc\n").err().unwrap();
        assert_eq!(report, "- a\n+ c\nrun `cargo xtask api` and commit its list");
    }

    #[test]
    fn options_are_the_rows_of_the_table() {
        let source = "/// # Options\n///\n/// | option | meaning | default |\n/// |---|---|---|\n\
                      /// | `renew` | renews | off |\n/// | `on_error = \\|e\\| x` | gives | |\n\
                      /// # Keys\n/// | `no` | | |";
        let found = options(source);
        let renew = "#[distributed_lock] `renew`, default: off";
        assert_eq!(found, [renew, "#[distributed_lock] `on_error = |e| x`, default:"]);
    }
}
