//! `cargo xtask dist`: the program `lockable` as an operator gets it, without a compiler.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{apt, shell, workspace};

/// Builds a static program, and packs it with its manual pages and completions.
///
/// # Errors
/// When a part cannot be built, or the program needs more than a kernel.
pub(crate) fn run() -> Result<bool, String> {
    prepare()?;
    let mut cargo = shell::cargo(&["build", "--locked", "--profile", "dist", "-p", "lockable-cli"]);
    if !shell::show(cargo.args(["--target", TARGET]).env(LINKER.0, LINKER.1)) {
        return Ok(false);
    }
    let program = workspace::target().join(TARGET).join("dist/lockable");
    refuse_dynamic(&program)?;
    let (dist, name) = (workspace::target().join("dist"), name());
    let folder = dist.join(&name);
    clear(&folder)?;
    copy(&program, &folder.join("lockable"))?;
    for file in TEXTS {
        copy(&workspace::root().join("lockable-cli").join(file), &folder.join(file))?;
    }
    print_texts(&program, &folder)?;
    let archive = pack(&dist, &name)?;
    println!("{}", archive.display());
    Ok(true)
}

/// The standard library and the C library that a static program is made of.
fn prepare() -> Result<(), String> {
    let mut rustup = Command::new("rustup");
    shell::output(rustup.args(["target", "add", TARGET]).current_dir(workspace::root()))?;
    if shell::answers("musl-gcc", &["--version"]) || apt::install("musl-tools") {
        return Ok(());
    }
    Err("musl-gcc is missing; install the package musl-tools".to_owned())
}

/// A program with a loader needs the libraries of the machine that it was built on.
fn refuse_dynamic(program: &Path) -> Result<(), String> {
    let mut readelf = Command::new("readelf");
    let headers = shell::output(readelf.arg("--program-headers").arg(program))?;
    if headers.contains("INTERP") {
        return Err(format!("{} is not static", program.display()));
    }
    Ok(())
}

fn name() -> String {
    format!("lockable-{}-{TARGET}", env!("CARGO_PKG_VERSION"))
}

fn clear(folder: &Path) -> Result<(), String> {
    fs::remove_dir_all(folder).ok();
    ["man", "completions"].iter().try_for_each(|inner| {
        let inner = folder.join(inner);
        fs::create_dir_all(&inner).map_err(|error| format!("{}: {error}", inner.display()))
    })
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(drop).map_err(|error| format!("{}: {error}", from.display()))
}

/// The program prints them itself, so they are of its version.
fn print_texts(program: &Path, folder: &Path) -> Result<(), String> {
    print(program, &["man"], &folder.join("man/lockable.1"))?;
    for verb in VERBS {
        print(program, &["man", verb], &folder.join(format!("man/lockable-{verb}.1")))?;
    }
    let shells = COMPLETIONS.iter();
    shells
        .map(|(shell, file)| (shell, folder.join("completions").join(file)))
        .try_for_each(|(shell, file)| print(program, &["completions", shell], &file))
}

fn print(program: &Path, arguments: &[&str], file: &Path) -> Result<(), String> {
    let text = shell::output(Command::new(program).args(arguments))?;
    fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}

/// An archive that is the same for the same files, and its checksum beside it.
fn pack(dist: &Path, name: &str) -> Result<PathBuf, String> {
    let archive = format!("{name}.tar.gz");
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"]);
    tar.args(["--use-compress-program", "gzip --no-name", "--create", "--file", &archive, name]);
    shell::output(tar.current_dir(dist))?;
    let sums = shell::output(Command::new("sha256sum").arg(&archive).current_dir(dist))?;
    let file = dist.join("SHA256SUMS");
    fs::write(&file, sums).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(dist.join(archive))
}

/// Static, and so for every Linux on this processor.
const TARGET: &str = "x86_64-unknown-linux-musl";

/// The C code of `ring` is compiled for the same C library.
const LINKER: (&str, &str) = ("CC_x86_64_unknown_linux_musl", "musl-gcc");

const TEXTS: [&str; 3] = ["README.md", "LICENSE-APACHE", "LICENSE-MIT"];

const VERBS: [&str; 10] =
    ["ls", "show", "release", "wait", "pause", "resume", "check", "run", "completions", "man"];

/// As the shells look for them.
const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "lockable"), ("zsh", "_lockable"), ("fish", "lockable.fish")];
