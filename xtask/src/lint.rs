//! `cargo xtask lint`: the complete list of checks.

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::check::{self, Check, Needs, Outcome};
use crate::{api, dependencies, shell, workspace};

pub(crate) fn run() -> ExitCode {
    if check::run_all(CHECKS, |_| true) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// In the order in which failures are cheapest to find.
pub(crate) const CHECKS: &[Check] = &[
    Check { name: "format", needs: Needs::Toolchain, run: format },
    Check { name: "size of the dependencies", needs: Needs::Toolchain, run: dependencies::budget },
    Check { name: "the macros' dependencies", needs: Needs::Toolchain, run: dependencies::macros },
    Check { name: "clippy", needs: Needs::Toolchain, run: clippy },
    Check { name: "documentation", needs: Needs::Toolchain, run: documentation },
    Check { name: "public API", needs: Needs::Toolchain, run: api::check },
    Check { name: "features one by one", needs: Needs::More, run: features },
    Check { name: "other platforms", needs: Needs::More, run: other_platforms },
    Check { name: "licences and sources", needs: Needs::More, run: licences },
    Check { name: "oldest toolchain", needs: Needs::More, run: oldest_toolchain },
    Check { name: "scripts", needs: Needs::More, run: scripts },
];

fn format() -> Outcome {
    with_cargo("fmt", &["--all", "--check"])
}

fn clippy() -> Outcome {
    let whole = ["--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
    with_cargo("clippy", &whole)
}

fn documentation() -> Outcome {
    let mut cargo = shell::cargo(&["doc", "--workspace", "--no-deps", "--all-features"]);
    silent(cargo.env("RUSTDOCFLAGS", "-D warnings"))
}

/// A feature alone shows what another one hides: an unused import, a missing dependency.
fn features() -> Outcome {
    let names = match workspace::features("lockable-runtime") {
        Ok(names) => names,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let sets = names.iter().map(String::as_str).chain([""]);
    let mut outcomes = sets.map(|set| {
        let alone = ["-p", "lockable-runtime", "--no-default-features", "--features", set];
        with_cargo("clippy", &[&alone[..], &["--", "-D", "warnings"]].concat())
    });
    let trouble = outcomes.find(|outcome| !matches!(outcome, Outcome::Ok(_)));
    trouble.unwrap_or_else(|| Outcome::Ok(String::new()))
}

/// What the README says compiles, without warnings; `tls` would need a C compiler for each of them.
fn other_platforms() -> Outcome {
    let names = match workspace::features("lockable-runtime") {
        Ok(names) => names.into_iter().filter(|name| name != "tls").collect::<Vec<_>>().join(","),
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let (installed, missing): (Vec<_>, Vec<_>) = PLATFORMS.into_iter().partition(is_installed);
    let missing = missing.iter().map(|target| format!("the target {target} is not installed"));
    let missing = missing.collect::<Vec<_>>().join("\n");
    if installed.is_empty() {
        return Outcome::Skipped(missing.replace('\n', ", "));
    }
    let sets: [&[&str]; 3] = [&[], &["--no-default-features"], &["--features", &names]];
    let runs = installed.iter().flat_map(|target| sets.iter().map(move |set| (target, set)));
    let mut outcomes = runs.map(|(target, set)| clippy_for(target, set));
    let trouble = outcomes.find(|outcome| !matches!(outcome, Outcome::Ok(_)));
    trouble.unwrap_or(Outcome::Ok(missing))
}

fn clippy_for(target: &str, features: &[&str]) -> Outcome {
    let packages = ["-p", "lockable-runtime", "-p", "lockable-macros", "--target", target];
    with_cargo("clippy", &[&packages[..], features, &["--", "-D", "warnings"]].concat())
}

/// Whether the toolchain has the standard library of a target.
fn is_installed(target: &&str) -> bool {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", target]).current_dir(workspace::root());
    shell::output(&mut rustc).is_ok_and(|folder| Path::new(folder.trim()).is_dir())
}

fn licences() -> Outcome {
    with_cargo("deny", &["--log-level", "error", "check", "bans", "licenses", "sources"])
}

fn oldest_toolchain() -> Outcome {
    let Some(version) = workspace::oldest_toolchain() else {
        return Outcome::Failed("Cargo.toml has no rust-version".to_owned());
    };
    // Asking for a toolchain by name would make rustup install it.
    let installed = shell::output(Command::new("rustup").args(["toolchain", "list"]));
    let installed = installed.unwrap_or_default();
    let names = installed.lines().filter_map(|line| line.split_whitespace().next());
    match names.into_iter().find(|name| name.starts_with(&version)) {
        Some(name) => check_with(name),
        None => Outcome::Skipped(format!("the toolchain {version} is not installed")),
    }
}

fn check_with(toolchain: &str) -> Outcome {
    let packages = ["-p", "lockable-macros", "-p", "lockable-runtime", "--all-features"];
    let mut rustup = Command::new("rustup");
    rustup.args(["run", toolchain, "cargo", "check"]).args(packages);
    silent(rustup.current_dir(workspace::root()))
}

fn scripts() -> Outcome {
    let Some(compiler) = ["luac5.1", "luac"].into_iter().find(|name| shell::answers(name, &["-v"]))
    else {
        return Outcome::Skipped("luac is not installed".to_owned());
    };
    match workspace::files(&workspace::root().join("lockable-runtime/scripts"), "lua") {
        Ok(files) if files.is_empty() => Outcome::Skipped("there are none".to_owned()),
        Ok(files) => silent(Command::new(compiler).arg("-p").args(files)),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

/// Runs one of cargo's commands that not every toolchain has.
fn with_cargo(command: &str, arguments: &[&str]) -> Outcome {
    if !shell::answers("cargo", &[command, "--version"]) {
        return Outcome::Skipped(format!("cargo {command} is not installed"));
    }
    silent(shell::cargo(&[command]).args(arguments))
}

/// Runs a command of which only a failure is worth reading.
fn silent(command: &mut Command) -> Outcome {
    shell::output(command).map(|_| String::new()).into()
}

/// Where the published packages are checked, but not tested.
const PLATFORMS: [&str; 3] =
    ["x86_64-pc-windows-msvc", "x86_64-pc-windows-gnu", "aarch64-apple-darwin"];
