//! The lines of a decorated body are counted as those of the plain one.
//!
//! rustc writes into the MIR of every function which places of the source have a counter, with any
//! toolchain and without LLVM's tools. The same file is compiled twice, so the places compare as text.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A plain `async fn` makes the future of its body at once.
const PLAIN_DEPTH: usize = 1;
/// A decorated one makes another for it, inside the one that acquires the lock first.
const DECORATED_DEPTH: usize = 2;

#[test]
fn a_decorated_body_has_the_plain_ones_counters() {
    let (plain, decorated) = (mir(&[]).unwrap(), decorated_mir());
    let plain = counters(&plain, PLAIN_DEPTH);
    let decorated = counters(&decorated, DECORATED_DEPTH);
    let differ: Vec<_> = plain.symmetric_difference(&decorated).collect();
    assert!(differ.is_empty(), "in one of the two only: {differ:#?}");
    assert!(plain.len() > 100, "{plain:?}");
}

/// There may be several builds of the runtime, with other features or of another toolchain: the
/// newest that this one can read serves.
fn decorated_mir() -> String {
    let mut complaint = String::from("no build of the runtime");
    for arguments in decorations() {
        match mir(&arguments) {
            Ok(mir) => return mir,
            Err(error) => complaint = error,
        }
    }
    panic!("{complaint}")
}

/// The MIR of `covered.rs` with its counters, or rustc's errors.
fn mir(arguments: &[OsString]) -> Result<String, String> {
    let folder = TempDir::new().unwrap();
    let mir = folder.path().join("covered.mir");
    let mut emit = OsString::from("--emit=mir=");
    emit.push(&mir);
    let output = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition=2024", "--crate-type=lib", "-Cinstrument-coverage"])
        .arg(emit)
        .args(arguments)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("coverage/covered.rs"))
        .output()
        .unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(fs::read_to_string(mir).unwrap())
}

/// The arguments that decorate, for each build of the runtime beside this test, newest first.
fn decorations() -> Vec<Vec<OsString>> {
    let test = env::current_exe().unwrap();
    let folder = test.parent().unwrap();
    let mut runtimes: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    runtimes.retain(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("liblockable_runtime-") && name.ends_with(".rlib")
    });
    runtimes.sort_by_key(|path| path.metadata().unwrap().modified().unwrap());
    let argument = |text: &str, path: &Path| {
        let mut argument = OsString::from(text);
        argument.push(path);
        argument
    };
    let arguments = |runtime: &PathBuf| {
        vec![
            "--cfg=decorated".into(),
            argument("-Ldependency=", folder),
            argument("--extern=lockable_runtime=", runtime),
        ]
    };
    runtimes.iter().rev().map(arguments).collect()
}

/// The places with a counter and their functions: those of futures and closures from `depth` on.
///
/// ```text
/// Input:  fn arms::{closure#0}(_1: Pin<&mut …
///             coverage Code { bcb: bcb1 } => …/covered.rs:116:11: 116:13 (#0);
/// Output: ("arms", "116:11: 116:13 (#0);")
/// ```
fn counters(mir: &str, depth: usize) -> BTreeSet<(&str, &str)> {
    let mut counters = BTreeSet::new();
    let mut function = "";
    for line in mir.lines() {
        if let Some(head) = line.strip_prefix("fn ") {
            function = head.split('(').next().unwrap();
        }
        let is_inside = function.matches("{closure#").count() >= depth;
        if is_inside && line.trim_start().starts_with("coverage Code") {
            let (_, place) = line.split_once("covered.rs:").unwrap();
            counters.insert((function.split("::").next().unwrap(), place));
        }
    }
    counters
}
