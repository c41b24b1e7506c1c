//! The public API of `lockable-runtime` as a list, one line for each item, which a change has to touch.
//!
//! See "Why is the public API a committed list?" in DESIGN.md.

use std::collections::{BTreeSet, HashSet};
use std::fs;

use public_api::{Builder, PublicApi, PublicItem};

use crate::check::Outcome;
use crate::{rustdoc, shell, workspace};

/// Fails with the difference when the list is not what the code says, of which the check before this one has made
/// the documentation.
pub(crate) fn check() -> Result<Outcome, String> {
    compare(&workspace::read(LIST)?, &all()?)
}

/// The same for what the default features give, which is the first section.
pub(crate) fn check_default() -> Result<Outcome, String> {
    compare(by_default(&workspace::read(LIST)?), &with(&[])?)
}

fn by_default(list: &str) -> &str {
    let mut sections = list.split(HEADING);
    sections.find_map(|section| section.strip_prefix(DEFAULT)).unwrap_or_default().trim_start()
}

/// `cargo xtask api`: writes the list again.
pub(crate) fn write() -> Result<bool, String> {
    let mut sections = vec![(DEFAULT.to_owned(), with(&[])?)];
    for feature in workspace::features("lockable-runtime")? {
        let lines = with(&["--features", &feature])?;
        sections.push((format!("with `{feature}`"), lines));
    }
    sections.push(("with several of them".to_owned(), with(&["--all-features"])?));
    let list = in_sections(sections);
    fs::write(workspace::root().join(LIST), &list).map_err(|error| format!("{LIST}: {error}"))?;
    println!("{} lines in {LIST}", list.lines().count());
    Ok(true)
}

/// What is public with these features beside the default ones.
fn with(features: &[&str]) -> Result<Vec<String>, String> {
    let mut cargo = shell::cargo(&["doc", "--no-deps", "--package", "lockable-runtime"]);
    // Links to what these features leave out lead nowhere.
    let cargo =
        rustdoc::as_on_docs_rs(cargo.args(features))?.env("RUSTDOCFLAGS", "--cap-lints=allow");
    shell::output(cargo)?;
    all()
}

/// Each line once, in the first section that has it: the default features are the first.
fn in_sections(sections: Vec<(String, Vec<String>)>) -> String {
    let (mut seen, mut list) = (HashSet::new(), String::new());
    for (name, lines) in sections {
        let lines: Vec<_> = lines.into_iter().filter(|line| seen.insert(line.clone())).collect();
        if !lines.is_empty() {
            list.extend([HEADING, &name, "\n", &lines.join("\n"), "\n"]);
        }
    }
    list
}

/// What the documentation has that was made last.
fn all() -> Result<Vec<String>, String> {
    let source = workspace::read("lockable-runtime/src/lib.rs")?;
    Ok(items(&public_api()?).into_iter().chain(options(&source)).collect())
}

/// What is public with the features of the documentation, without the items under `#[doc(hidden)]`.
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

fn compare(listed: &str, actual: &[String]) -> Result<Outcome, String> {
    let before: BTreeSet<_> = listed.lines().filter(|line| !line.starts_with(HEADING)).collect();
    let after: BTreeSet<_> = actual.iter().map(String::as_str).collect();
    let gone = before.difference(&after).map(|line| format!("- {line}"));
    let new = after.difference(&before).map(|line| format!("+ {line}"));
    let changes: Vec<_> = gone.chain(new).collect();
    if changes.is_empty() {
        return Ok(Outcome::Passed(format!("{} lines", after.len())));
    }
    Err(format!("{}\nrun `cargo xtask api` and commit its list", changes.join("\n")))
}

/// Before the name of a section.
const HEADING: &str = "## ";

const DEFAULT: &str = "by default";

const LIST: &str = "lockable-runtime/public-api.txt";

/// Traits of the compiler's own, a type that changes with the version of pin-project-lite, the traits
/// that only expanded code names, and the pages of the guide, which only the documentation has.
const NOISE: [&str; 7] = [
    "Freeze for ",
    "StructuralPartialEq for ",
    "UnsafeUnpin for ",
    "UnwindSafe for ",
    "__pin",
    "lockable_runtime::core::attribute::",
    "pub mod lockable_runtime::guide",
];

#[cfg(test)]
mod tests {
    use super::{by_default, compare, in_sections, options};

    #[test]
    fn a_difference_shows_both_sides_and_the_command() {
        let [a, b, c] = ["a", "b", "c"].map(str::to_owned);
        assert!(compare("## by default\na\nb\n", &[b.clone(), a]).is_ok());
        let report = compare("a\nb\n", &[b, c]).err().unwrap();
        assert_eq!(report, "- a\n+ c\nrun `cargo xtask api` and commit its list");
    }

    #[test]
    fn a_line_is_in_the_first_section_that_has_it() {
        let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let sections = [("x", "a b"), ("y", "a c"), ("z", "b c")];
        let sections = sections.map(|(name, text)| (name.to_owned(), lines(text)));
        assert_eq!(in_sections(sections.into()), "## x\na\nb\n## y\nc\n");
    }

    #[test]
    fn the_default_section_ends_where_the_next_begins() {
        assert_eq!(by_default("## by default\na\nb\n## with `y`\nc\n"), "a\nb\n");
        assert_eq!(by_default("a\n"), "");
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
