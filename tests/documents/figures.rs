//! The figures of the README, which are those of the tables of the benches, and its length.

use crate::read;

/// Who looks for a lock reads it to its end.
const MAX_LINES: usize = 165;

#[test]
fn the_readme_is_short() {
    let lines = read("README.md").lines().count();
    assert!(lines <= MAX_LINES, "{lines} lines");
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
        format!("64 tasks reach {many}. While a connection is new, it is {first}."),
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
