//! `cargo xtask lint`: the complete list of checks.

use std::path::Path;
use std::process::Command;

use crate::check::{self, Check, Needs, Outcome};
use crate::{api, counts, dependencies, examples, packages, rustdoc, shell, tools, workspace};

pub(crate) fn run() -> bool {
    tools::prepare();
    check::run_all(CHECKS.iter())
}

/// In the order in which failures are cheapest to find.
pub(crate) const CHECKS: &[Check] = &[
    Check { name: "format", needs: Needs::Toolchain, run: format },
    Check { name: "size of the dependencies", needs: Needs::Toolchain, run: dependencies::budget },
    Check { name: "the macros' dependencies", needs: Needs::Toolchain, run: dependencies::macros },
    // The test command has both from what it builds and runs; here the pages of programs are among them.
    Check { name: "clippy", needs: Needs::More, run: clippy },
    Check { name: "documentation", needs: Needs::More, run: documentation },
    Check { name: "badges of features", needs: Needs::Pages, run: packages::badges },
    Check { name: "public API", needs: Needs::Pages, run: api::check },
    // It writes other pages, so it comes behind those that read them.
    Check { name: "public API by default", needs: Needs::More, run: api::check_default },
    Check { name: "features one by one", needs: Needs::More, run: features },
    Check { name: "asked without `admin`", needs: Needs::More, run: asked_to_stop },
    Check { name: "other platforms", needs: Needs::More, run: other_platforms },
    Check { name: "WebAssembly", needs: Needs::More, run: web_assembly },
    Check { name: "licences and sources", needs: Needs::More, run: licences },
    Check { name: "oldest toolchain", needs: Needs::More, run: oldest_toolchain },
    Check { name: "packages", needs: Needs::More, run: packages::archives },
    Check { name: "scripts", needs: Needs::More, run: scripts },
    Check { name: "counts", needs: Needs::More, run: counts::check },
    Check { name: "attributes of others", needs: Needs::More, run: attributes_of_others },
    Check { name: "providers of cryptography", needs: Needs::More, run: providers },
    examples::CHECK,
];

fn format() -> Result<Outcome, String> {
    with_cargo("fmt", &["--all", "--check"])?;
    with_cargo("fmt", &["--manifest-path", "examples/stacks/Cargo.toml", "--check"])?;
    with_cargo("fmt", &["--manifest-path", PROVIDERS, "--check"])?;
    with_cargo("fmt", &["--manifest-path", BESIDE, "--check"])
}

fn clippy() -> Result<Outcome, String> {
    clippy_for(&["--workspace", "--all-targets", "--all-features"])
}

fn clippy_for(what: &[&str]) -> Result<Outcome, String> {
    with_cargo("clippy", &[what, &["--", "-D", "warnings"]].concat())
}

/// As docs.rs builds it.
fn documentation() -> Result<Outcome, String> {
    let mut cargo = shell::cargo(&["doc", "--no-deps", "--workspace", "--all-features"]);
    silent(rustdoc::as_on_docs_rs(&mut cargo)?)
}

/// A feature alone shows what another one hides: an unused import, a missing dependency.
fn features() -> Result<Outcome, String> {
    for set in workspace::features("lockable-runtime")?.iter().map(String::as_str).chain([""]) {
        clippy_for(&["-p", "lockable-runtime", "--no-default-features", "--features", set])?;
    }
    Ok(Outcome::passed())
}

/// The workspace's own tests are built with every feature: this one with none but the default.
fn asked_to_stop() -> Result<Outcome, String> {
    silent(&mut shell::cargo(&["test", "-p", "lockable-runtime", "--test", "asked_to_stop"]))
}

/// What the README says compiles, without warnings; ring, of `tls`, would need a C compiler for each of them.
fn other_platforms() -> Result<Outcome, String> {
    let names = workspace::features("lockable-runtime")?;
    let names: Vec<_> = names.into_iter().filter(|name| name != "tls").collect();
    let names = names.join(",");
    let (installed, missing): (Vec<_>, Vec<_>) = PLATFORMS.into_iter().partition(is_installed);
    for target in &installed {
        clippy_for(&["-p", "lockable-cli", "--no-default-features", "--target", target])?;
        let packages = ["-p", "lockable-runtime", "-p", "lockable-macros", "--target", target];
        for set in [&[][..], &["--no-default-features"], &["--features", &names]] {
            clippy_for(&[&packages, set].concat())?;
        }
    }
    let missing = missing.iter().map(|target| format!("the target {target} is not installed"));
    let missing: Vec<_> = missing.collect();
    if installed.is_empty() {
        return Ok(Outcome::Skipped(missing.join(", ")));
    }
    Ok(Outcome::Passed(missing.join("\n")))
}

/// There the runtime itself says what it lacks, before a package that it depends on fails.
fn web_assembly() -> Result<Outcome, String> {
    if !is_installed(&tools::WEB_ASSEMBLY) {
        return Ok(Outcome::Skipped(format!(
            "the target {} is not installed",
            tools::WEB_ASSEMBLY
        )));
    }
    let check = ["check", "-p", "lockable-runtime", "--no-default-features"];
    let mut check = shell::cargo(&[&check[..], &["--target", tools::WEB_ASSEMBLY]].concat());
    let Err(errors) = shell::output(&mut check) else {
        return Err("nothing says that the runtime has no WebAssembly".to_owned());
    };
    match errors.lines().find(|line| line.starts_with("error")) {
        Some(first) if first.contains("which WebAssembly lacks") => Ok(Outcome::passed()),
        _ => Err(errors),
    }
}

/// Whether the toolchain has the standard library of a target.
fn is_installed(target: &&str) -> bool {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", target]).current_dir(workspace::root());
    shell::output(&mut rustc).is_ok_and(|folder| Path::new(folder.trim()).is_dir())
}

fn licences() -> Result<Outcome, String> {
    let program = tools::cargo_deny().ok_or("cargo-deny is not installed")?;
    let arguments = ["--log-level", "error", "check", "bans", "licenses", "sources"];
    silent(Command::new(program).args(arguments).current_dir(workspace::root()))
}

fn oldest_toolchain() -> Result<Outcome, String> {
    let missing = || format!("the toolchain {} is not installed", tools::OLDEST);
    let toolchain = tools::oldest_toolchain().ok_or_else(missing)?;
    let packages = ["lockable-installed", "lockable-macros", "lockable-runtime", "lockable-cli"];
    let packages = packages.iter().flat_map(|package| ["-p", package]).chain(["--all-features"]);
    let mut rustup = Command::new("rustup");
    rustup.args(["run", &toolchain, "cargo", "check"]).args(packages);
    silent(rustup.current_dir(workspace::root()))
}

fn scripts() -> Result<Outcome, String> {
    let Some(compiler) = tools::lua_compiler() else {
        return Ok(Outcome::Skipped("luac is not installed".to_owned()));
    };
    let files = workspace::files("lockable-runtime/scripts")?;
    silent(Command::new(compiler).arg("-p").args(files))
}

fn attributes_of_others() -> Result<Outcome, String> {
    apart(BESIDE, "beside", &[])
}

/// With aws-lc-rs alone, and beside ring.
fn providers() -> Result<Outcome, String> {
    apart(PROVIDERS, "providers", &[])?;
    apart(PROVIDERS, "providers", &["--features", "ring"])
}

/// Tests apart from what the workspace builds, as `examples/stacks`.
fn apart(manifest: &str, folder: &str, more: &[&str]) -> Result<Outcome, String> {
    let mut cargo = shell::cargo(&["test", "--quiet", "--locked", "--manifest-path", manifest]);
    silent(cargo.args(more).arg("--target-dir").arg(workspace::target().join(folder)))
}

/// Runs one of cargo's commands that not every toolchain has.
fn with_cargo(command: &str, arguments: &[&str]) -> Result<Outcome, String> {
    if !shell::answers("cargo", &[command, "--version"]) {
        return Ok(Outcome::Skipped(format!("cargo {command} is not installed")));
    }
    silent(shell::cargo(&[command]).args(arguments))
}

/// Runs a command of which only a failure is worth reading.
fn silent(command: &mut Command) -> Result<Outcome, String> {
    shell::output(command).map(|_| Outcome::passed())
}

/// Where the published packages are checked, but not tested.
const PLATFORMS: [&str; 3] = ["x86_64-pc-windows-msvc", tools::WINDOWS, "aarch64-apple-darwin"];

/// Functions under the attribute and that of another crate.
const BESIDE: &str = "tests/beside/Cargo.toml";

/// TLS in programs with another provider of cryptography than ring.
const PROVIDERS: &str = "tests/providers/Cargo.toml";
