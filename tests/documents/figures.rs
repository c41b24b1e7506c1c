//! The figures of the README, which are those of the tables of the benches, and its length.

use std::fs;
use std::path::Path;

use crate::{files, read, root};

/// Who looks for a lock reads it to its end.
const MAX_LINES: usize = 210;

#[test]
fn the_readme_is_short() {
    let lines = read("README.md").lines().count();
    assert!(lines <= MAX_LINES, "{lines} lines");
}

#[test]
fn the_readme_has_the_right_number_of_lines_of_code() {
    let readme = read("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let mut parts = readme.split_once("Where its lines go: of about ").unwrap().1;
    let of_locks = ["lease", "waiters", "hold", "releaser", "worker"];
    let of_locks = of_locks.map(|room| format!("lockable-runtime/src/{room}"));
    let of_redis = ["lockable-runtime/src/backend/redis".to_owned()];
    let all = ["lockable-runtime/src".to_owned()];
    for (folders, words) in [
        (&all[..], " lines of code, without tests and comments, "),
        (&of_redis, " speak to Redis in all its forms"),
        (&of_locks, " are leases, waiting and releases"),
    ] {
        let (before, after) = parts.split_once(words).unwrap_or_else(|| panic!("{words}"));
        let number = before.rsplit(" and ").next().unwrap().replace(' ', "");
        let (said, counted) = (number.parse::<usize>().unwrap(), lines_of_code(folders));
        assert!(said.abs_diff(counted) * 20 <= counted, "{words} {said}, and not {counted}");
        parts = after;
    }
}

/// Without comments, and without the tests beside the code or in files of their own.
fn lines_of_code(folders: &[String]) -> usize {
    let files = folders.iter().flat_map(|folder| files(&root().join(folder)));
    let is_test = |path: &Path| {
        path.iter().any(|name| ["tests.rs", "tests", "simulation"].iter().any(|test| name == *test))
    };
    let is_code = |path: &Path| path.extension().is_some_and(|it| it == "rs");
    // Above the workspace's folder there is the one of these tests.
    let files = files.filter(|path| is_code(path) && !is_test(path.strip_prefix(root()).unwrap()));
    files.map(|path| code_of(&fs::read_to_string(path).unwrap())).sum()
}

fn code_of(text: &str) -> usize {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.filter(|line| !line.starts_with("//")).count()
}

#[test]
fn the_rates_of_the_readme_are_those_of_the_benches() {
    let tables = read("benches/README.md");
    let rates = rates(&tables);
    assert_eq!(rates.len(), 12, "{rates:?}");
    let of_first_pairs = |case: &str| case.contains("first pairs of a connection");
    let one = range(&rates, |case| case.starts_with("1 task"));
    let many = range(&rates, |case| case.starts_with("64 tasks") && !of_first_pairs(case));
    let first = range(&rates, |case| case.starts_with("64 tasks") && of_first_pairs(case));
    let readme = read("README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let sentences = [
        format!("One task reaches {one} of the rate of a bare `SET NX` and a compare-and-delete."),
        format!("64 tasks reach {many}, and {first} with the first pairs of a connection."),
    ];
    for sentence in sentences {
        assert!(readme.contains(&sentence), "README.md lacks: {sentence}");
    }
}

/// The cases of the bench `pairs`, with their rates over those of *bare*.
fn rates(tables: &str) -> Vec<(&str, f64)> {
    let rows = tables
        .lines()
        .filter(|line| line.contains("current-thread |") || line.contains("multi-thread |"));
    let cells = rows.map(|row| row.split(" | ").collect::<Vec<_>>());
    cells.map(|cells| (cells[0].trim_start_matches("| "), rate(cells[2]))).collect()
}

/// The median, before the least and the most.
fn rate(cell: &str) -> f64 {
    cell.split(' ').next().unwrap().parse().unwrap()
}

/// The least and the most of these cases.
fn range(rates: &[(&str, f64)], is_meant: impl Fn(&str) -> bool) -> String {
    let meant = || rates.iter().filter(|(case, _)| is_meant(case)).map(|(_, rate)| rate * 100.0);
    let (least, most) = (meant().fold(f64::MAX, f64::min), meant().fold(0.0, f64::max));
    format!("{least:.0} to {most:.0} %")
}
