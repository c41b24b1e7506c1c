//! The tests of one program, and how it runs.

use std::env;
use std::io::{self, BufRead, BufReader, PipeReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::build::{self, Binary};
use super::patience::{SILENCE, Watched};
use super::report::{Ended, Report, now};
use crate::{rustdoc, shell, workspace};

pub(crate) struct Suite {
    name: String,
    command: Command,
    /// In the order in which they run; unknown for examples of the documentation.
    tests: Vec<String>,
    plan: Plan,
}

/// What all suites need of this machine, and of the command line.
pub(crate) struct Surroundings {
    python: PathBuf,
    library_path: String,
    is_full: bool,
}

impl Surroundings {
    pub(crate) fn new(python: PathBuf, is_full: bool) -> Result<Self, String> {
        Ok(Self { python, library_path: library_path()?, is_full })
    }
}

/// How many tests run at a time, and how much of the machine they take together.
#[derive(Clone, Copy)]
struct Plan {
    threads: usize,
    weight: usize,
}

impl Suite {
    /// The tests of a binary, in the surroundings that cargo would give it.
    pub(crate) fn of(binary: &Binary, around: &Surroundings) -> Result<Self, String> {
        let plan = plan(&binary.name);
        let mut command = Command::new(&binary.program);
        command.current_dir(&binary.package).env("CARGO_MANIFEST_DIR", &binary.package);
        command
            .env("LOCKABLE_PYTHON", &around.python)
            .env("RUST_TEST_THREADS", plan.threads.to_string());
        command.env(LIBRARY_PATH, &around.library_path);
        if around.is_full {
            command.arg("--include-ignored");
        }
        let mut suite = Self { name: binary.name.clone(), command, tests: Vec::new(), plan };
        suite.tests = suite.list(&binary.program)?;
        Ok(suite)
    }

    /// The examples of the documentation, which cargo compiles itself, and with them its pages.
    pub(super) fn of_documentation() -> Result<Self, String> {
        let mut command = shell::cargo(&["test", "--workspace", "--all-features", "--doc"]);
        rustdoc::as_on_docs_rs(build::with_lints(&mut command))?;
        let name = "doctests".to_owned();
        let plan = plan(&name);
        Ok(Self { name, command, tests: Vec::new(), plan })
    }

    fn list(&self, program: &Path) -> Result<Vec<String>, String> {
        let mut command = Command::new(program);
        for (name, value) in self.command.get_envs() {
            command.envs(value.map(|value| (name, value)));
        }
        let list = shell::output(command.args(["--list", "--format", "terse"]))?;
        let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    }

    pub(super) fn has_tests(&self) -> bool {
        !self.tests.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        self.tests.len()
    }

    pub(super) fn weight(&self) -> usize {
        self.plan.weight
    }

    /// What starts first has the lowest.
    pub(super) fn rank(&self) -> usize {
        let known = PLANS.iter().position(|(name, _)| *name == self.name);
        known.unwrap_or(PLANS.len())
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.name == name
    }

    /// Its tests with this in their names, which begin with that of the suite: `faults::turns`.
    pub(super) fn only(mut self, part: &str) -> Option<Self> {
        self.tests.retain(|test| format!("{}::{test}", self.name).contains(part));
        self.command.arg("--exact").args(&self.tests);
        self.has_tests().then_some(self)
    }

    /// The command that runs the test of that full name alone.
    pub(crate) fn one(mut self, test: &str) -> Option<Command> {
        self.command.args(["--exact", test]);
        self.tests.iter().any(|known| known == test).then_some(self.command)
    }

    pub(super) fn run(mut self, report: &Report) {
        report.starts(&self.name, self.tests.len());
        let start = now();
        let ended = match self.start() {
            Ok((output, program)) => {
                let text = self.follow(output, &program, report);
                Ended::of(&text, program.wait())
            }
            Err(error) => Ended::of(&format!("{error}\n"), None),
        };
        report.ended(&self.name, ended, start.elapsed());
    }

    /// Standard output and standard error come in the order in which they were written.
    fn start(&mut self) -> io::Result<(PipeReader, Watched)> {
        let (output, input) = io::pipe()?;
        self.command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
        let child = self.command.spawn()?;
        // The command has the other end of the pipe, whose last copy must close with the child.
        self.command = Command::new("");
        Ok((output, Watched::new(child, SILENCE)))
    }

    fn follow(&self, output: PipeReader, program: &Watched, report: &Report) -> String {
        let mut text = String::new();
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            program.is_alive();
            let line = String::from_utf8_lossy(&line);
            if has_ended(&line) {
                report.test_ended(&self.name);
            } else if line.ends_with(HANGS) {
                report.say(&format!("{}: {line}", self.name));
            }
            text = text + &line + "\n";
        }
        text
    }
}

/// Whether it says so of a test: `test fields::a_claim - should panic ... ok`.
fn has_ended(line: &str) -> bool {
    let outcome = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... "));
    outcome.is_some_and(|(_, outcome)| OUTCOMES.iter().any(|start| outcome.starts_with(start)))
}

/// Where the programs of tests find the standard library that some of them load.
fn library_path() -> Result<String, String> {
    let mut rustc = Command::new("rustc");
    let folder =
        shell::output(rustc.args(["--print", "target-libdir"]).current_dir(workspace::root()))?;
    let before = env::var(LIBRARY_PATH).unwrap_or_default();
    Ok(format!("{}:{before}", folder.trim()))
}

fn plan(name: &str) -> Plan {
    let known = PLANS.iter().find(|(known, _)| *known == name);
    known.map_or(OTHERS, |(_, plan)| *plan)
}

/// Those that take longest, in the order in which they start. What is measured in a whole process and what starts
/// clusters weighs more than its threads say.
const PLANS: [(&str, Plan); 13] = [
    ("faults", Plan { threads: 8, weight: 8 }),
    ("crowds", Plan { threads: 1, weight: 4 }),
    ("ui", Plan { threads: 1, weight: 4 }),
    ("lockable-runtime", Plan { threads: 4, weight: 6 }),
    ("contract", Plan { threads: 8, weight: 8 }),
    ("documents", Plan { threads: 2, weight: 4 }),
    ("chaos", Plan { threads: 2, weight: 4 }),
    ("processes", Plan { threads: 2, weight: 4 }),
    ("doctests", Plan { threads: 2, weight: 4 }),
    ("examples", Plan { threads: 2, weight: 2 }),
    ("operations", Plan { threads: 4, weight: 4 }),
    ("hostile", Plan { threads: 2, weight: 4 }),
    // It computes all the time, and would take the processors from those that measure it.
    ("model", Plan { threads: 1, weight: 4 }),
];

const OTHERS: Plan = Plan { threads: 4, weight: 4 };

const OUTCOMES: [&str; 3] = ["ok", "FAILED", "ignored"];

/// How the standard library's test runner reports a test that may hang.
const HANGS: &str = "has been running for over 60 seconds";

const LIBRARY_PATH: &str =
    if cfg!(target_os = "macos") { "DYLD_FALLBACK_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" };

#[cfg(test)]
mod tests {
    use super::has_ended;

    #[test]
    fn a_test_ends_with_its_outcome() {
        for outcome in ["ok", "FAILED", "ignored, slow"] {
            assert!(has_ended(&format!("test a::b - should panic ... {outcome}")), "{outcome}");
        }
        assert!(has_ended("test src/lib.rs - run (line 3) ... ok"));
        assert!(!has_ended("test result: ok. 3 passed; 0 failed"));
        assert!(!has_ended("a test ... ok"));
    }
}
