//! The table of the faults, and the tests that it names.

use std::fs;
use std::path::PathBuf;

use crate::{read, root};

#[test]
fn the_tests_of_every_fault_exist() {
    let (text, mut known) = (read("tests/FAULTS.md"), Vec::new());
    let rows = text.lines().filter_map(|line| line.strip_prefix("| "));
    for row in rows.filter(|row| !row.starts_with("id ")) {
        let cells: Vec<_> = row.split(" | ").collect();
        let [id, _, _, proved, tests] = cells[..] else { panic!("{row}") };
        match proved {
            "whole" | "part" => assert!(tests.starts_with('`'), "{id} names no test"),
            other => assert!(["none", "not built"].contains(&other), "{id}: {other}"),
        }
        for name in tests.split('`').skip(1).step_by(2).filter(|name| name.contains("::")) {
            assert!(exists(name), "{id}: there is no test {name}");
        }
        assert!(!known.contains(&id), "{id} is there twice");
        known.push(id);
    }
    assert!(known.len() > 150, "{} faults", known.len());
}

#[test]
fn the_tests_of_every_bug_exist() {
    let text = read("tests/chaos/TRACK-RECORD.md");
    let (_, bugs) = text.split_once("\n## Bugs\n").unwrap();
    let (bugs, _) = bugs.split_once("\n## ").unwrap();
    let rows = bugs.lines().filter_map(|line| line.strip_prefix("| "));
    let rows: Vec<_> = rows.filter(|row| !row.starts_with("broke ")).collect();
    let mut tried = 0;
    for row in &rows {
        let cells: Vec<_> = row.trim_end_matches(" |").split(" | ").collect();
        let [_, what, fix, tests, ..] = cells[..] else { panic!("{row}") };
        assert!(fix.starts_with('`') && tests.starts_with('`'), "{what}");
        for name in tests.split('`').skip(1).step_by(2).filter(|name| name.contains("::")) {
            assert!(exists(name), "{what}: there is no test {name}");
        }
        let mutant = cells.get(4).and_then(|tried| tried.strip_prefix("mutant `"));
        let mutant = mutant.and_then(|mutant| mutant.strip_suffix('`'));
        tried += usize::from(mutant.is_some());
        let is_file = |id| root().join(format!("tests/mutants/{id}.txt")).is_file();
        assert!(mutant.is_none_or(is_file), "{what}: there is no such mutant");
    }
    assert!(rows.len() >= 50 && tried >= 10, "{} bugs, {tried} tried", rows.len());
}

fn exists(test: &str) -> bool {
    let (module, name) = test.rsplit_once("::").unwrap();
    // Unit tests are in the file of their module, or in one of their own.
    let modules = [module, module.strip_suffix("::tests").unwrap_or(module)];
    let files = modules.into_iter().flat_map(files_of);
    let mut texts = files.filter_map(|file| fs::read_to_string(file).ok());
    texts.any(|text| ["(", "<"].iter().any(|end| text.contains(&format!("fn {name}{end}"))))
}

/// Where the code of a module may be.
fn files_of(module: &str) -> [PathBuf; 3] {
    let path = module.replace("::", "/");
    let file = match path.split_once('/').unwrap_or((&path, "")) {
        ("cli", rest) => format!("lockable-cli/tests/{rest}"),
        (suite, rest) if suite.starts_with("lockable-") => format!("{suite}/src/{rest}"),
        _ => format!("tests/{path}"),
    };
    [".rs", "/mod.rs", "/main.rs"].map(|end| root().join(file.clone() + end))
}
