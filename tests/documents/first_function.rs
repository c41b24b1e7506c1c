//! The first decorated function of a reader who has nothing but the README.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{blocks, read, root};

/// Goal: the README's first commands add all that its first program needs.
/// Method: a package outside of the workspace with exactly these, but for where the crates come from, and without the
/// client library: the default features add it to what the program is checked with. `blocks` runs the program.
#[test]
fn the_first_program_of_the_readme_compiles_with_its_dependencies() {
    let package = Path::new(env!("CARGO_TARGET_TMPDIR")).join("first-function");
    fs::create_dir_all(package.join("src")).unwrap();
    let readme = read("README.md");
    let dependencies = dependencies(&blocks(&readme, "sh")[0]);
    fs::write(package.join("Cargo.toml"), manifest(&dependencies)).unwrap();
    fs::copy(root().join("Cargo.lock"), package.join("Cargo.lock")).unwrap();
    fs::write(package.join("src/main.rs"), &blocks(&readme, "rust")[0]).unwrap();

    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["check", "--offline", "--quiet", "--target-dir"]).arg(target());
    let output = cargo.current_dir(&package).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Where cargo has built this test.
fn target() -> PathBuf {
    env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned()
}

/// What the commands add, in the versions of this workspace.
fn dependencies(commands: &str) -> String {
    let crates = commands.lines().map(|line| line.strip_prefix("cargo add ").unwrap());
    let lines = crates.map(|added| match added.split_once(" --features ") {
        None if added == "lockable-runtime" => {
            let manifest = read("lockable-runtime/Cargo.toml");
            assert!(manifest.contains("\ndefault = [\"macros\", \"redis\"]\n"), "other defaults");
            format!("{added} = {{ version = \"*\", default-features = false, features = [\"macros\"] }}\n")
        }
        Some((name, features)) => {
            let features = features.replace(',', "\", \"");
            format!("{name} = {{ version = \"*\", features = [\"{features}\"] }}\n")
        }
        None => format!("{added} = \"*\"\n"),
    });
    lines.collect()
}

fn manifest(dependencies: &str) -> String {
    let ours = root().join("lockable-runtime");
    format!(
        "[package]\nname = \"first-function\"\nedition = \"2024\"\n\n[dependencies]\n{dependencies}\n\
         [workspace]\n\n[patch.crates-io]\nlockable-runtime = {{ path = '{}' }}\n\n\
         [profile.dev]\ndebug = false\n",
        ours.display()
    )
}
