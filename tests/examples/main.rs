//! Every example of the workspace runs to its end, with and without a server, and is in the list.
//!
//! An example asserts what it claims, so a good end is the proof. They are found where cargo knows
//! them from, and are run as `cargo test --workspace` has built them: cargo builds a workspace's
//! examples together with its tests.

use std::env::{self, consts::EXE_SUFFIX};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lockable_tests::wait::HANG;
use lockable_tests::{Admin, Program, Server, wait};
use serde_json::Value;

#[test]
fn every_example_runs_without_set_up() {
    assert_all(|_, program| program.env_remove("LOCKABLE_URL").run(HANG));
}

#[test]
fn every_example_runs_on_redis() {
    assert_all(|example, program| {
        let server = Server::start();
        let admin = server.admin();
        let before = connections(&admin);
        let said = program.env("LOCKABLE_URL", &server.url()).run(HANG)?;
        if example.takes_url() && connections(&admin) == before {
            return Err(format!("it never connected to the server of LOCKABLE_URL\n{said}"));
        }
        Ok(said)
    });
}

#[test]
fn every_example_is_in_the_list_with_its_question() {
    let list = fs::read_to_string(root().join("examples/README.md")).unwrap();
    let is_listed = |Example { name, .. }: &Example| {
        let start = format!("| [`{name}`](");
        list.lines().any(|line| line.starts_with(&start) && line.contains('?'))
    };
    let missing = examples().into_iter().filter(|example| !is_listed(example));
    let missing: Vec<_> = missing.map(|example| example.name).collect();
    assert!(missing.is_empty(), "not in examples/README.md: {missing:?}");
}

struct Example {
    name: String,
    source: PathBuf,
}

impl Example {
    /// Whether its code, and not only its documentation, asks for the URL.
    fn takes_url(&self) -> bool {
        fs::read_to_string(&self.source).unwrap().contains("\"LOCKABLE_URL\"")
    }

    /// What cargo has built of it, beside this test.
    fn executable(&self) -> PathBuf {
        let test = env::current_exe().unwrap();
        let folder = test.ancestors().nth(2).unwrap().join("examples");
        let program = folder.join(format!("{}{EXE_SUFFIX}", self.name));
        let written = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
        let is_current = written(&program) >= written(&self.source);
        assert!(is_current, "{} is not built: {BUILD} does", self.name);
        program
    }
}

const BUILD: &str = "`cargo test --workspace --all-features --no-run`";

/// What a panic writes; one of the library's own thread does not end the process.
const PANIC: &str = " panicked at ";

/// What an error says of a lease or a deadline that has passed.
const LATE: [&str; 4] = [
    "the lock was lost",
    "the reply came after the lease's own deadline",
    "could not connect within",
    "no answer within",
];

/// Runs one after the other, because their deadlines and leases are those of users; fails with all that ended badly.
fn assert_all(run: impl Fn(&Example, Program) -> Result<String, String>) {
    let mut failures = Vec::new();
    for example in examples() {
        let program = || Program::new(example.executable()).env_remove("REDIS_URL");
        match outcome(|| run(&example, program())) {
            Ok(said) => println!("{}:\n{said}", example.name),
            Err(failure) => failures.push(format!("{}: {failure}", example.name)),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What an example says in the end. Its deadlines and leases are those of users, of a second or two: as long as it says
/// that one has passed, the machine has other things to do.
fn outcome(run: impl Fn() -> Result<String, String>) -> Result<String, String> {
    let mut outcome = Err(String::new());
    wait::until(HANG, || {
        outcome = match run() {
            Ok(said) if said.contains(PANIC) => Err(said),
            other => other,
        };
        let failure = outcome.as_ref().err();
        let late = failure.filter(|why| LATE.iter().any(|text| why.contains(text)));
        late.inspect(|why| println!("late: {why}")).is_none()
    });
    outcome
}

/// How many connections the server has taken.
fn connections(admin: &Admin) -> String {
    let statistics = admin.info("stats");
    let count = |line: &str| line.strip_prefix("total_connections_received:").map(str::to_owned);
    statistics.lines().find_map(count).unwrap()
}

/// The examples of all members of the workspace.
fn examples() -> Vec<Example> {
    let packages = metadata()["packages"].take();
    let targets = list(&packages).iter().flat_map(|package| list(&package["targets"]));
    let is_example = |target: &&Value| list(&target["kind"]).iter().any(|kind| kind == "example");
    let examples: Vec<_> = targets.filter(is_example).map(example).collect();
    assert!(!examples.is_empty(), "cargo knows no example");
    examples
}

fn example(target: &Value) -> Example {
    let text = |name: &str| target[name].as_str().unwrap().to_owned();
    Example { name: text("name"), source: text("src_path").into() }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn metadata() -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version=1", "--no-deps", "--offline"]);
    let output = cargo.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
