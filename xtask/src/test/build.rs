//! Building every test, which is when clippy looks at the code.
//!
//! See "Why do the test binaries run side by side, compiled by `clippy-driver`?" in DESIGN.md.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::check::Outcome;
use crate::shell;

/// What came out of a build.
#[derive(Default)]
pub(crate) struct Build {
    pub(crate) binaries: Vec<Binary>,
    warnings: usize,
}

/// A program of tests, as cargo has built it.
pub(crate) struct Binary {
    /// The name of its target, or of its package where these are the unit tests.
    pub(crate) name: String,
    pub(super) package: PathBuf,
    pub(super) program: PathBuf,
}

/// Builds the tests, the examples and programs that they run, and the benches; the user sees what cargo says.
pub(super) fn everything() -> Result<Build, String> {
    let mut build = Build::default();
    // Two commands, because one that names the benches would build the examples as tests.
    build.run(with_lints(&mut shell::cargo(&["build", "--workspace", "--benches"])))?;
    build.binaries.clear();
    build.run(with_lints(&mut shell::cargo(&["test", "--workspace", "--no-run"])))?;
    Ok(build)
}

/// Lets clippy's driver compile the workspace where it is installed.
pub(crate) fn with_lints(cargo: &mut Command) -> &mut Command {
    if shell::answers(CLIPPY, &["--version"]) {
        cargo.env("RUSTC_WORKSPACE_WRAPPER", CLIPPY);
    }
    cargo
}

impl Build {
    /// Adds what a cargo command builds.
    pub(crate) fn run(&mut self, cargo: &mut Command) -> Result<(), String> {
        cargo.args(["--all-features", "--message-format=json-diagnostic-rendered-ansi"]);
        cargo.stdout(Stdio::piped());
        let mut child = cargo.spawn().map_err(|error| format!("cargo: {error}"))?;
        let output = child.stdout.take().ok_or("cargo has no output")?;
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            self.add(&serde_json::from_str(&line).unwrap_or_default());
        }
        match child.wait() {
            Ok(status) if status.success() => Ok(()),
            _ => Err("cargo has not built everything".to_owned()),
        }
    }

    /// What cargo says of one thing that it has compiled, or found compiled.
    fn add(&mut self, message: &Value) {
        self.binaries.extend(binary(message));
        let text = message.pointer("/message/rendered").and_then(Value::as_str);
        if let Some(text) = text {
            eprint!("{text}");
            self.warnings += usize::from(text_of(message, "/message/level") == Some("warning"));
        }
    }

    /// Whether rustc and clippy were content.
    pub(crate) fn outcome(&self) -> Result<Outcome, String> {
        match self.warnings {
            0 if shell::answers(CLIPPY, &["--version"]) => Ok(Outcome::passed()),
            0 => Ok(Outcome::Skipped(format!("{CLIPPY} is not installed"))),
            warnings => Err(format!("{warnings} warnings, printed above")),
        }
    }
}

/// ```text
/// Input:  {"manifest_path": "…/tests/Cargo.toml", "executable": "…/deps/faults-1f…", "profile": {"test": true, …},
///          "target": {"name": "faults", "kind": ["test"], …}, …}
/// Output: "faults" with its package and its program
/// ```
fn binary(message: &Value) -> Option<Binary> {
    let program = PathBuf::from(text_of(message, "/executable")?);
    let package = Path::new(text_of(message, "/manifest_path")?).parent()?.to_owned();
    if message.pointer("/profile/test") != Some(&Value::Bool(true)) {
        return None;
    }
    let name = match (text_of(message, "/target/kind/0")?, package.file_name()) {
        ("lib" | "bin" | "proc-macro", Some(folder)) => folder.to_string_lossy().into_owned(),
        ("test", _) => text_of(message, "/target/name")?.to_owned(),
        // An example or a bench, whose own `main` is no test.
        _ => return None,
    };
    Some(Binary { name, package, program })
}

fn text_of<'a>(message: &'a Value, place: &str) -> Option<&'a str> {
    message.pointer(place)?.as_str()
}

const CLIPPY: &str = "clippy-driver";
