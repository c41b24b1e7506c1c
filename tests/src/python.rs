//! The Python of the tests against clients in other languages.

use std::env;
use std::path::{Path, PathBuf};

/// The interpreter of the virtual environment that `cargo xtask test` prepares.
///
/// It has the packages of `tests/python/requirements.txt`. The environment variable
/// `LOCKABLE_PYTHON` names another one.
pub fn interpreter() -> PathBuf {
    let path = env::var_os("LOCKABLE_PYTHON").map_or_else(default_interpreter, PathBuf::from);
    assert!(path.exists(), "there is no {}: run `cargo xtask test` once", path.display());
    path
}

fn default_interpreter() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from);
    target.join("python/bin/python")
}
