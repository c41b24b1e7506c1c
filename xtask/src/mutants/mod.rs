//! `cargo xtask mutants`: whether the tests catch the bugs that `tests/mutants` describes.
//!
//! See "Why are seeded bugs (mutants) texts, and all in one build?" in DESIGN.md.

mod copy;
mod text;

use std::collections::BTreeSet;
use std::iter;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::test::build::{Binary, Build};
use crate::test::report::now;
use crate::test::suite::{Suite, Surroundings};
use crate::{python, redis, shell, workspace};

use text::Mutant;

pub(crate) const USAGE: &str = "mutants [--only ID] [--list]";

/// Runs the test of each bug, first without it and then with it.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> Result<bool, String> {
    let arguments: Vec<_> = arguments.collect();
    let (only, is_list) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => (None, false),
        ["--list"] => (None, true),
        ["--only", id] => (Some(id), false),
        ["--only", id, "--list"] | ["--list", "--only", id] => (Some(id), true),
        _ => return Err(format!("usage: cargo xtask {USAGE}")),
    };
    let all = text::all()?;
    let wanted = wanted(&all, only)?;
    if is_list {
        for mutant in wanted {
            println!("{mutant}");
        }
        return Ok(true);
    }
    text::check(&all)?;
    let start = now();
    let tests = Tests::build(&all)?;
    tests.pass(&wanted)?;
    let caught = count(&wanted, |mutant| tests.catch(mutant));
    let missed = wanted.len() - caught;
    println!("\nin {}\n{caught} caught, {missed} missed", seconds(start));
    Ok(missed == 0)
}

fn wanted<'a>(all: &'a [Mutant], only: Option<&str>) -> Result<Vec<&'a Mutant>, String> {
    let wanted = all.iter().filter(|mutant| only.is_none_or(|id| mutant.id == id));
    let wanted: Vec<_> = wanted.collect();
    if wanted.is_empty() {
        let ids: Vec<_> = all.iter().map(|mutant| mutant.id.as_str()).collect();
        return Err(format!("no bug has that id; there are\n{}", ids.join("\n")));
    }
    Ok(wanted)
}

/// Lets a command of cargo build in a copy of the sources with every bug in it. Returns the folder of the build.
fn in_copy(mutants: &[Mutant], cargo: &mut Command) -> Result<PathBuf, String> {
    let folder = std::path::absolute(workspace::target().join("mutants"));
    let folder = folder.map_err(|error| error.to_string())?;
    let (sources, build) = (folder.join("sources"), folder.join("build"));
    copy::write(mutants, &sources)?;
    // Code that no bug needs any more is no reason to warn.
    cargo
        .env("RUSTFLAGS", "--cap-lints=allow --cfg=lockable_internals")
        .env("CARGO_TARGET_DIR", &build);
    cargo.current_dir(sources);
    Ok(build)
}

/// The same, and switches one bug on.
pub(crate) fn with_bug(id: &str, cargo: &mut Command) -> Result<PathBuf, String> {
    let all = text::all()?;
    wanted(&all, Some(id))?;
    text::check(&all)?;
    in_copy(&all, cargo.env(copy::VARIABLE, id))
}

/// The programs of the tests, with every bug in them.
struct Tests {
    binaries: Vec<Binary>,
    around: Surroundings,
}

impl Tests {
    fn build(mutants: &[Mutant]) -> Result<Self, String> {
        redis::prepare()?;
        // A test that only `--full` runs may be named, too.
        let around = Surroundings::new(python::prepare()?, true)?;
        let mut cargo = shell::cargo(&["test", "--no-run"]);
        in_copy(mutants, cargo.args(targets(mutants)))?;
        let mut build = Build::default();
        build.run(&mut cargo)?;
        Ok(Self { binaries: build.binaries, around })
    }

    /// A test that fails without a bug says nothing when it fails with one.
    fn pass(&self, mutants: &[&Mutant]) -> Result<(), String> {
        let start = now();
        let tests: BTreeSet<_> = mutants.iter().map(|mutant| &mutant.test).collect();
        let tests: Vec<_> = tests.into_iter().collect();
        let passed = count(&tests, |test| {
            let ran = self.run(test, NO_BUG, PASSED);
            ran.inspect_err(|output| println!("{test} does not pass\n{output}")).is_ok()
        });
        println!("without a bug {passed} of {} passed, {}\n", tests.len(), seconds(start));
        if passed == tests.len() {
            Ok(())
        } else {
            Err("each has to pass without a bug".to_owned())
        }
    }

    fn catch(&self, Mutant { id, test, .. }: &Mutant) -> bool {
        let (start, ran) = (now(), self.run(test, id, FAILED));
        let took = seconds(start);
        match &ran {
            Ok(()) => println!("{id}: caught by {test}, {took}"),
            Err(output) if output.contains(PASSED) => println!("{id}: missed by {test}, {took}"),
            Err(output) => println!("{id}: not run by {test}, {took}\n{output}"),
        }
        ran.is_ok()
    }

    /// Runs one test. The error is its output when that does not have this result.
    fn run(&self, test: &str, bug: &str, result: &str) -> Result<(), String> {
        let missing = || "no suite has that test".to_owned();
        let (suite, name) = test.split_once("::").ok_or_else(missing)?;
        let binary = self.binaries.iter().find(|binary| binary.name == suite);
        let suite = Suite::of(binary.ok_or_else(missing)?, &self.around)?;
        let mut command = suite.one(name).ok_or_else(missing)?;
        // A bug may keep an event away for ever: on a quiet machine, none takes longer.
        command.env(copy::VARIABLE, bug).env("LOCKABLE_HANG_SECONDS", "20");
        let output = command.stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{command:?}: {error}"))?;
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        let has_result = printed.lines().any(|line| line.starts_with(result));
        if has_result { Ok(()) } else { Err(format!("{printed}{}", output.status)) }
    }
}

/// How many of them the check is true for. A few are checked side by side.
fn count<T: Sync>(all: &[T], check: impl Fn(&T) -> bool + Sync) -> usize {
    let rest = Mutex::new(all.iter());
    let next = || rest.lock().unwrap_or_else(PoisonError::into_inner).next();
    let count = || iter::from_fn(next).filter(|one| check(one)).count();
    thread::scope(|scope| {
        let running: Vec<_> = (0..SIDE_BY_SIDE).map(|_| scope.spawn(count)).collect();
        running.into_iter().map(|one| one.join().unwrap_or_default()).sum()
    })
}

/// The packages and programs of the tests, as cargo calls them.
fn targets(mutants: &[Mutant]) -> BTreeSet<String> {
    let suites = mutants.iter().filter_map(|mutant| mutant.test.split("::").next());
    let targets = suites.flat_map(|suite| match suite {
        "cli" => ["--package=lockable-cli".to_owned(), "--test=cli".to_owned()],
        "lockable-cli" => [format!("--package={suite}"), "--bin=lockable".to_owned()],
        _ if suite.starts_with("lockable-") => [format!("--package={suite}"), "--lib".to_owned()],
        _ => ["--package=lockable-tests".to_owned(), format!("--test={suite}")],
    });
    targets.collect()
}

fn seconds(start: Instant) -> String {
    format!("{:.1} s", start.elapsed().as_secs_f64())
}

/// A test mostly waits, and none of them is so slow that a second one at its side makes it fail.
const SIDE_BY_SIDE: usize = 3;

/// No id is empty.
const NO_BUG: &str = "";

/// What the standard runner says of exactly one test.
const PASSED: &str = "test result: ok. 1 passed; 0 failed; 0 ignored;";
const FAILED: &str = "test result: FAILED. 0 passed; 1 failed; 0 ignored;";
