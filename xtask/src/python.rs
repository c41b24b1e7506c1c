//! The Python of the tests against a client in another language.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::{apt, shell, workspace};

/// Sees to it that there is a virtual environment with the packages of the tests, and gives its
/// interpreter. The error says what to install.
pub(crate) fn prepare() -> Result<PathBuf, String> {
    if let Some(chosen) = env::var_os("LOCKABLE_PYTHON") {
        return Ok(PathBuf::from(chosen));
    }
    let folder = workspace::target().join("python");
    let folder = std::path::absolute(folder).map_err(|error| error.to_string())?;
    let interpreter = folder.join("bin/python");
    if !is_ready(&folder) {
        create(&folder)?;
        install_packages(&interpreter)?;
        fs::copy(requirements(), stamp(&folder)).map_err(|error| error.to_string())?;
    }
    Ok(interpreter)
}

/// A copy of the list lies beside what was installed from it.
fn is_ready(folder: &Path) -> bool {
    let installed = fs::read(stamp(folder));
    installed.is_ok_and(|installed| fs::read(requirements()).is_ok_and(|list| list == installed))
}

/// Debian has the module `venv` without what it needs, which is a package of its own.
fn create(folder: &Path) -> Result<(), String> {
    let try_create = || {
        let mut python = Command::new("python3");
        shell::output(python.args(["-m", "venv", "--clear"]).arg(folder)).map(drop)
    };
    let first = try_create();
    let outcome = if first.is_err() && apt::install("python3-venv") { try_create() } else { first };
    outcome.map_err(|error| format!("{error}\n{HELP}"))
}

fn install_packages(interpreter: &Path) -> Result<(), String> {
    let mut pip = Command::new(interpreter);
    pip.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(requirements());
    shell::output(&mut pip).map(drop).map_err(|error| format!("{error}\n{HELP}"))
}

fn requirements() -> PathBuf {
    workspace::root().join("tests/python/requirements.txt")
}

fn stamp(folder: &Path) -> PathBuf {
    folder.join("requirements.txt")
}

const HELP: &str = "\
The tests run beside a Python client. Install Python 3.10 or newer with its module venv
(Debian, Ubuntu: sudo apt-get install python3-venv), or set LOCKABLE_PYTHON to an interpreter that
has the packages of tests/python/requirements.txt.";
