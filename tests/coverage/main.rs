//! The lines of a decorated body are counted as those of the plain one.
//!
//! rustc writes into the MIR of every function which places of the source have a counter, with any
//! toolchain and without LLVM's tools. The same file is compiled twice, so the places compare as text.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A plain `async fn` makes the future of its body at once.
const PLAIN_DEPTH: usize = 1;
/// A decorated one makes another for it, inside the one that acquires the lock first.
const DECORATED_DEPTH: usize = 2;

#[test]
fn a_decorated_body_has_the_plain_ones_counters() {
    let mut complaint = String::from("no build of the runtime");
    let decorated = runtimes().into_iter().rev().find_map(|runtime| {
        mir(Some(&runtime)).inspect_err(|error| complaint.clone_from(error)).ok()
    });
    let (plain, decorated) = (mir(None).unwrap(), decorated.expect(&complaint));
    let plain = counters(&plain, PLAIN_DEPTH);
    let decorated = counters(&decorated, DECORATED_DEPTH);
    let differ: Vec<_> = plain.symmetric_difference(&decorated).collect();
    assert!(differ.is_empty(), "in one of the two only: {differ:#?}");
    assert!(plain.len() > 50, "{plain:?}");
}

/// The MIR of `covered.rs` with its counters, decorated if there is a runtime, or rustc's errors.
fn mir(runtime: Option<&Path>) -> Result<String, String> {
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition=2024", "--crate-type=lib", "-Cinstrument-coverage", "--emit=mir=-"]);
    // It makes a folder for what it does not write in the end.
    rustc.args(["--out-dir", env!("CARGO_TARGET_TMPDIR")]);
    rustc.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("coverage/covered.rs"));
    if let Some(runtime) = runtime {
        let dependencies = format!("-Ldependency={}", runtime.parent().unwrap().display());
        let runtime = format!("--extern=lockable_runtime={}", runtime.display());
        rustc.args(["--cfg=decorated", &dependencies, &runtime]);
    }
    let output = rustc.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// The builds of the runtime beside this test, the newest last; some may have other features or be of another
/// toolchain.
fn runtimes() -> Vec<PathBuf> {
    let test = env::current_exe().unwrap();
    let files = test.parent().unwrap().read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut runtimes: Vec<_> = files
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with("liblockable_runtime-") && name.ends_with(".rlib")
        })
        .collect();
    runtimes.sort_by_key(|path| path.metadata().unwrap().modified().unwrap());
    runtimes
}

/// The places with a counter and their functions: those of futures and closures from `depth` on.
///
/// ```text
/// Input:  fn branches::{closure#0}(_1: Pin<&mut …
///             coverage Code { bcb: bcb1 } => …/covered.rs:116:11: 116:13 (#0);
/// Output: ("branches", "116:11: 116:13 (#0);")
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
