//! What the attribute costs the compiler: 200 functions under `#[distributed_lock]`, beside the same
//! locked by hand, under `#[tracing::instrument]`, and plain.
//!
//! `cargo bench --bench compile_time`

use std::env;
use std::fmt::Write;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

use lockable_benches::median;

const TURNS: usize = 15;
/// Each function of the template is there this often.
const COPIES: usize = 40;
/// Functions as a user writes them, `NUMBER` apart.
const FUNCTIONS: &str = include_str!("compile_time/functions.rs");
/// What they use.
const SHARED: &str = include_str!("compile_time/shared.rs");
const IMPORTS: &str = "#![allow(unused_imports)]

use std::collections::HashMap;
use std::future::ready;
use std::sync::OnceLock;
use std::time::Duration;

use lockable_runtime::{LockError, Locker, distributed_lock};
use tracing::instrument;

";

/// How the functions of one crate are written.
#[derive(Clone, Copy)]
enum Way {
    Decorated,
    ByHand,
    Instrumented,
    Plain,
}

const WAYS: [Way; 4] = [Way::Decorated, Way::ByHand, Way::Instrumented, Way::Plain];

fn main() {
    let workspace = Workspace::generate();
    for way in WAYS {
        workspace.check(way);
    }
    let mut times: [Vec<f64>; 4] = Default::default();
    for turn in 0..TURNS {
        for place in 0..WAYS.len() {
            let which = (turn + place) % WAYS.len();
            times[which].push(workspace.check(WAYS[which]));
        }
    }
    report(&times);
}

/// The four crates, in a workspace of their own with the versions of this one.
struct Workspace(PathBuf);

impl Workspace {
    fn generate() -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile_time");
        let ours = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
        for way in WAYS {
            let folder = root.join(way.name());
            fs::create_dir_all(folder.join("src")).expect("a folder");
            fs::write(folder.join("Cargo.toml"), manifest(way, ours)).expect("a manifest");
            fs::write(folder.join("src/lib.rs"), source(way)).expect("a source");
        }
        let members = WAYS.map(Way::name);
        let manifest = format!("[workspace]\nresolver = \"3\"\nmembers = {members:?}\n");
        fs::write(root.join("Cargo.toml"), manifest).expect("a manifest");
        fs::copy(ours.join("Cargo.lock"), root.join("Cargo.lock")).expect("a lock file");
        Self(root)
    }

    /// How many milliseconds of a processor `cargo check` takes for this crate alone, all of it.
    ///
    /// bash reports what its children used: the clock would count other processes too.
    fn check(&self, way: Way) -> f64 {
        let source = File::options().append(true).open(self.0.join(way.name()).join("src/lib.rs"));
        let source = source.expect("a source");
        source.set_modified(SystemTime::now()).expect("a new date");
        let timed = "TIMEFORMAT='%3U %3S'; time \"$@\"";
        let output = Command::new("bash")
            .args(["-c", timed, "bash", env!("CARGO"), "check", "--package", way.name()])
            .current_dir(&self.0)
            .env("CARGO_TARGET_DIR", self.0.join("target"))
            .env("CARGO_INCREMENTAL", "0")
            .env("RUSTC_WRAPPER", "")
            .env("LC_ALL", "C")
            .output();
        milliseconds(&output.expect("bash is on the path"), way)
    }
}

fn manifest(way: Way, ours: &Path) -> String {
    let name = way.name();
    let runtime = ours.join("lockable-runtime");
    let runtime = runtime.to_str().expect("a path in UTF-8");
    format!(
        "[package]\nname = {name:?}\nedition = \"2024\"\n\n[dependencies]\n\
         lockable-runtime.path = {runtime:?}\n\
         tracing = {{ version = \"0.1\", default-features = false, features = [\"attributes\"] }}\n"
    )
}

fn source(way: Way) -> String {
    let mut source = format!("{IMPORTS}{SHARED}");
    for number in 1..=COPIES {
        let functions = FUNCTIONS.replace("NUMBER", &number.to_string());
        for function in functions.split("\n\n") {
            write!(source, "\n{}\n", way.write(function)).expect("a text takes it");
        }
    }
    source
}

impl Way {
    const fn name(self) -> &'static str {
        match self {
            Self::Decorated => "decorated",
            Self::ByHand => "by-hand",
            Self::Instrumented => "instrumented",
            Self::Plain => "plain",
        }
    }

    /// The function of the template, which is decorated, this way.
    fn write(self, function: &str) -> String {
        let (attribute, plain) = function.split_once('\n').expect("an attribute");
        match self {
            Self::Decorated => function.to_owned(),
            Self::ByHand => by_hand(attribute, plain),
            Self::Instrumented => format!("#[instrument]\n{plain}"),
            Self::Plain => plain.to_owned(),
        }
    }
}

/// The lock of the attribute, written by hand.
fn by_hand(attribute: &str, plain: &str) -> String {
    let key = attribute.split('"').nth(1).expect("a key");
    let (head, body) = plain.split_once("{\n").expect("a body");
    let (_, returned) = head.split_once(") ").expect("parameters");
    let returned = returned.trim_start_matches("-> ").trim();
    let value = match returned.split('<').next() {
        Some("Option") => "outcome.unwrap_or_else(|error| {\n    report(&error);\n    None\n})",
        Some("Result") => "outcome?",
        _ => "if let Err(error) = outcome {\n    report(&error);\n}",
    };
    let returned = if returned.is_empty() { "()" } else { returned };
    format!(
        "{head}{{\nlet outcome: Result<{returned}, LockError> = locker()\n\
         .lock(format!(\"{key}\"))\n.expire(Duration::from_secs(10))\n\
         .run(async move {{\n{body})\n.await;\n{value}\n}}"
    )
}

/// User and system time, which bash prints in its last line.
fn milliseconds(output: &Output, way: Way) -> f64 {
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    let is_checked = printed.contains(&format!("Checking {} ", way.name()));
    assert!(is_checked, "nothing was checked: {printed}");
    let times = printed.lines().last().expect("the times").split(' ');
    times.map(|seconds| seconds.parse::<f64>().expect("a number") * 1e3).sum()
}

fn report(times: &[Vec<f64>; 4]) {
    let functions = COPIES * FUNCTIONS.split("\n\n").count();
    println!("\n`cargo check` of {functions} functions, {TURNS} turns, ms of a processor");
    for (times, way) in times.iter().zip(WAYS) {
        println!("  {:<12} {:>6.0}", way.name(), median(times.iter().copied()));
    }
    println!("\nms per function: median (least to most)");
    let [decorated, by_hand, instrumented, plain] = times;
    let compare = |name: &str, ours: &[f64], ground: &[f64], goal: &str| {
        let each = u32::try_from(functions).expect("few functions");
        let over = ours.iter().zip(ground).map(|(a, b)| (a - b) / f64::from(each));
        let over: Vec<f64> = over.collect();
        let least = over.iter().copied().fold(f64::INFINITY, f64::min);
        let most = over.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let middle = median(over);
        println!("  {name:<26} {middle:>6.3} ({least:.3} to {most:.3}){goal}");
    };
    compare("decorated over by hand", decorated, by_hand, "   goal: at most 0.15");
    compare("decorated over plain", decorated, plain, "   goal: at most the next");
    compare("instrumented over plain", instrumented, plain, "");
}
