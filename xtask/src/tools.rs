//! The tools of `cargo xtask lint` that do not come with a toolchain.

use std::path::PathBuf;
use std::process::Command;

use crate::{apt, shell, workspace};

/// Installs what is missing. A check fails whose tool could not be installed.
pub(crate) fn prepare() {
    if cargo_deny().is_none() {
        install("cargo-deny", install_cargo_deny);
    }
    if oldest_toolchain().is_none() {
        install(&format!("the toolchain {OLDEST}"), install_oldest_toolchain);
    }
    install(&format!("the targets {WINDOWS} and {WEB_ASSEMBLY}"), install_targets);
    if lua_compiler().is_none() {
        apt::install("lua5.1");
    }
}

fn install(name: &str, install: fn() -> Result<String, String>) {
    println!("installing {name}");
    if let Err(report) = install() {
        eprintln!("{report}");
    }
}

/// The user's own `cargo-deny`, or the one that [`prepare`] has built.
pub(crate) fn cargo_deny() -> Option<PathBuf> {
    let built = folder().join("bin/cargo-deny");
    let mut programs = [PathBuf::from("cargo-deny"), built].into_iter();
    programs.find(|program| shell::answers(program, &["--version"]))
}

fn install_cargo_deny() -> Result<String, String> {
    let mut cargo = shell::cargo(&["install", "--quiet", "--locked", CARGO_DENY, "--root"]);
    shell::output(cargo.arg(folder()))
}

/// The name of an installed toolchain that is as old as the workspace allows.
///
/// Rustup would install a toolchain that a command names, so the installed ones are searched.
pub(crate) fn oldest_toolchain() -> Option<String> {
    let installed = shell::output(Command::new("rustup").args(["toolchain", "list"])).ok()?;
    let mut names = installed.lines().filter_map(|line| line.split_whitespace().next());
    names.find(|name| name.starts_with(OLDEST)).map(str::to_owned)
}

fn install_oldest_toolchain() -> Result<String, String> {
    let arguments = ["toolchain", "install", OLDEST, "--profile", "minimal", "--no-self-update"];
    shell::output(Command::new("rustup").args(arguments))
}

/// It does nothing where the targets are there already.
fn install_targets() -> Result<String, String> {
    let mut rustup = Command::new("rustup");
    shell::output(
        rustup.args(["target", "add", WINDOWS, WEB_ASSEMBLY]).current_dir(workspace::root()),
    )
}

/// The compiler of the Lua that Redis runs.
pub(crate) fn lua_compiler() -> Option<&'static str> {
    ["luac5.1", "luac"].into_iter().find(|name| shell::answers(name, &["-v"]))
}

/// What is built here is this project's own, as the Python of the tests is.
fn folder() -> PathBuf {
    let folder = workspace::target().join("tools");
    std::path::absolute(&folder).unwrap_or(folder)
}

/// One of the platforms without Unix; a check needs its standard library alone.
pub(crate) const WINDOWS: &str = "x86_64-pc-windows-gnu";

/// Where the runtime says what it lacks.
pub(crate) const WEB_ASSEMBLY: &str = "wasm32-unknown-unknown";

/// One version for everyone, so that a check finds the same everywhere.
const CARGO_DENY: &str = "cargo-deny@0.20.2";

/// The `rust-version` of the workspace, which this package inherits.
pub(crate) const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");
