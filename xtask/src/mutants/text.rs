//! The texts that describe bugs, one file for each.

use std::path::Path;

use std::collections::BTreeSet;
use std::fmt;

use crate::workspace;

/// A bug that a test must catch.
pub(super) struct Mutant {
    /// The name of its file.
    pub(super) id: String,
    sentence: String,
    pub(super) file: String,
    /// The suite and the full name: `faults::waiting::turns::a_claim`.
    pub(super) test: String,
    /// Each text before, with the text after.
    pub(super) changes: Vec<(String, String)>,
}

pub(super) fn all() -> Result<Vec<Mutant>, String> {
    let mut paths = workspace::files(FOLDER)?;
    paths.sort();
    let mutants = paths.iter().map(|path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = workspace::read(&format!("{FOLDER}/{name}.txt"))?;
        Mutant::parse(&name, &text)
            .ok_or_else(|| format!("{name}: see CONTRIBUTING.md for its form"))
    });
    mutants.collect()
}

/// Fails with everything that keeps a bug from its place, or from its test.
pub(super) fn check(mutants: &[Mutant]) -> Result<(), String> {
    let (functions, mut problems) = (functions()?, Vec::new());
    for Mutant { id, file, test, changes, .. } in mutants {
        let text = workspace::read(file).unwrap_or_default();
        if changes.iter().any(|(before, _)| text.matches(before).count() != 1) {
            problems.push(format!("{id}: a text before is not exactly once in {file}"));
        }
        let are_whole = changes.iter().all(|(before, after)| is_whole(before) && is_whole(after));
        if !are_whole && Path::new(file).extension().is_none_or(|kind| kind != "lua") {
            problems.push(format!("{id}: a text is a part of a block or of a call"));
        }
        // A case of a test has its number behind the name of the function.
        if !test.rsplit("::").take(2).any(|name| functions.contains(name)) {
            problems.push(format!("{id}: there is no test {test}"));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// Whether `if` and `else` can be put around the text: each bracket has its other one, it continues no expression, and no
/// name is needed later.
fn is_whole(text: &str) -> bool {
    let name = text.lines().last().and_then(|line| line.strip_prefix("let "));
    if name.is_some_and(|name| !name.starts_with('_')) || text.starts_with(['.', '?']) {
        return false;
    }
    let text = text.replace("'{'", "").replace("'}'", "");
    let count = |bracket| text.matches(bracket).count();
    [['(', ')'], ['[', ']'], ['{', '}']].map(|pair| pair.map(count)).iter().all(|[a, b]| a == b)
}

/// The names of all functions that may be tests.
fn functions() -> Result<BTreeSet<String>, String> {
    let mut names = BTreeSet::new();
    for folder in TESTS {
        for path in workspace::files_below(folder)? {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let found = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
            // A claim has several words, and the name of a module is no test.
            names.extend(found.filter(|name| name.contains('_')).map(str::to_owned));
        }
    }
    Ok(names)
}

impl Mutant {
    /// From the form that CONTRIBUTING.md describes.
    pub(super) fn parse(id: &str, description: &str) -> Option<Self> {
        let mut parts = description.trim_end().split("\n--- before\n");
        let head: Vec<_> = parts.next()?.lines().collect();
        let [sentence, file, test] = head[..] else { return None };
        let changes = parts.map(|change| {
            let (before, after) = change.split_once("\n--- after")?;
            // A bug that takes its text out has no line there.
            Some((before.to_owned(), after.strip_prefix('\n').unwrap_or_default().to_owned()))
        });
        Some(Self {
            id: id.to_owned(),
            sentence: sentence.to_owned(),
            file: file.strip_prefix("file: ")?.to_owned(),
            test: test.strip_prefix("test: ")?.to_owned(),
            changes: changes.collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())?,
        })
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, sentence, file, test, .. } = self;
        write!(f, "{id}\n    {sentence}\n    {file}\n    {test}")
    }
}

const FOLDER: &str = "tests/mutants";

const TESTS: [&str; 5] = [
    "tests",
    "lockable-runtime/src",
    "lockable-macros/src",
    "lockable-cli/src",
    "lockable-cli/tests",
];

#[cfg(test)]
mod tests {
    use super::{Mutant, all, check};

    #[test]
    fn every_bug_has_its_place_and_its_test() {
        let mutants = all().unwrap();
        assert!(mutants.len() >= 80, "{} bugs", mutants.len());
        check(&mutants).unwrap();
    }

    #[test]
    fn what_a_bug_misses_is_named() {
        let text =
            "A bug.\nfile: Cargo.toml\ntest: faults::not_a_claim\n--- before\n[no]\n--- after\n";
        let problems = check(&[Mutant::parse("a-bug", text).unwrap()]).unwrap_err();
        let place = "a-bug: a text before is not exactly once in Cargo.toml";
        assert_eq!(problems, format!("{place}\na-bug: there is no test faults::not_a_claim"));
        let part = text.replace("[no]", "if no {");
        let problems = check(&[Mutant::parse("a-bug", &part).unwrap()]).unwrap_err();
        assert!(problems.contains("a-bug: a text is a part of a block or of a call"), "{problems}");
        let declares = text.replace("[no]", "let no = 1;");
        let problems = check(&[Mutant::parse("a-bug", &declares).unwrap()]).unwrap_err();
        assert!(problems.contains("a-bug: a text is a part of a block"), "{problems}");
        for unknown in ["after", "before"] {
            assert!(Mutant::parse("a-bug", &text.replace(unknown, "then")).is_none());
        }
    }
}
