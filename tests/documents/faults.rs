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
