//! The first decorated function of a reader who has nothing but the README.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lockable_tests::Server;

use crate::{blocks, read, root};

const KEY: &str = "disLock:order:7";

/// Goal: who runs the README's first commands and copies its first program has a lock.
/// Method: a package outside of the workspace with exactly these, but for where the crates come from
/// and for the port of the server.
#[test]
fn the_first_program_of_the_readme_builds_and_locks() {
    let server = Server::start();
    let admin = server.admin();
    let program = build(&server.url());

    let free = Command::new(&program).output().unwrap();
    assert!(free.status.success(), "{}", String::from_utf8_lossy(&free.stderr));
    assert_eq!(String::from_utf8_lossy(&free.stdout), "order 7 is settled\n");
    assert_eq!(admin.get(KEY), None);
    assert!(admin.pttl("lockable:fence:{4EB}") > 0, "it has locked something");

    admin.set(KEY, "another");
    let busy = Command::new(&program).output().unwrap();
    let error = String::from_utf8_lossy(&busy.stderr);
    assert!(!busy.status.success() && error.contains("WaitLimitReached"), "{error}");
    assert_eq!(admin.get(KEY).as_deref(), Some("another"));
}

/// Builds the package, and gives its program.
///
/// It stays from run to run, so that only the first one compiles the dependencies.
fn build(url: &str) -> PathBuf {
    let package = Path::new(env!("CARGO_TARGET_TMPDIR")).join("first-function");
    fs::create_dir_all(package.join("src")).unwrap();
    let readme = read("README.md");
    let dependencies = dependencies(&blocks(&readme, "sh")[0]);
    fs::write(package.join("Cargo.toml"), manifest(&dependencies)).unwrap();
    fs::copy(root().join("Cargo.lock"), package.join("Cargo.lock")).unwrap();
    let program = blocks(&readme, "rust").remove(0).replace("redis://127.0.0.1:6379", url);
    assert!(program.contains(url), "the program has no URL to replace:\n{program}");
    fs::write(package.join("src/main.rs"), program).unwrap();

    let target = package.join("target");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--offline", "--quiet", "--target-dir"]).arg(&target);
    let output = cargo.current_dir(&package).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target.join("debug/first-function")
}

/// What the commands add, in the versions of this workspace.
fn dependencies(commands: &str) -> String {
    let crates = commands.lines().map(|line| line.strip_prefix("cargo add ").unwrap());
    let lines = crates.map(|added| match added.split_once(" --features ") {
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
