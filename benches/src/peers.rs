//! The peers, built or installed into a folder under `target`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// A file of the folder `peers`.
#[must_use]
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name)
}

/// Builds the peers in Rust, and gives their program.
///
/// # Errors
/// Why there is none.
pub fn rust() -> Result<PathBuf, String> {
    let target = folder("rust")?;
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--locked", "--manifest-path"]);
    run(cargo.arg(source("rust/Cargo.toml")).arg("--target-dir").arg(&target))?;
    Ok(target.join("release/lockable-bench-peers"))
}

/// Sees to it that there is a virtual environment, and gives its interpreter.
///
/// # Errors
/// Why there is none.
pub fn python() -> Result<PathBuf, String> {
    let (folder, list) = (folder("python")?, source("requirements.txt"));
    let interpreter = folder.join("bin/python");
    once(&folder, &list, || {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        let mut pip = Command::new(&interpreter);
        run(pip.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&list))
    })?;
    Ok(interpreter)
}

/// Sees to it that there are the packages of Node, and gives their folder.
///
/// # Errors
/// Why there is none.
pub fn node() -> Result<PathBuf, String> {
    run(Command::new("node").arg("--version"))?;
    let (folder, list) = (folder("node")?, source("package-lock.json"));
    once(&folder, &list, || {
        for file in ["package.json", "package-lock.json"] {
            fs::copy(source(file), folder.join(file)).map_err(|error| error.to_string())?;
        }
        run(Command::new("npm").args(["ci", "--silent", "--no-audit"]).current_dir(&folder))
    })?;
    Ok(folder.join("node_modules"))
}

/// A copy of the list lies beside what was installed from it.
fn once(
    folder: &Path,
    list: &Path,
    install: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let stamp = folder.join("installed");
    let wanted = fs::read(list).map_err(|error| error.to_string())?;
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    install()?;
    fs::write(stamp, wanted).map_err(|error| error.to_string())
}

fn folder(name: &str) -> Result<PathBuf, String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from);
    let folder = target.join("bench-peers").join(name);
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    folder.canonicalize().map_err(|error| error.to_string())
}

/// The error is the first line of what the program said, or why it does not start.
fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name}: {}", said.lines().next().unwrap_or("failed")))
}
