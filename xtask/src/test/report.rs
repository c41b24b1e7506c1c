//! What a person sees of a run: a line for each suite as it ends, one that moves, and the summary.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::check::{self, Outcome, dotted};

pub(super) struct Report {
    start: Instant,
    is_terminal: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How many tests there are.
    total: usize,
    /// Of each suite that runs: how many of its tests have ended, of how many.
    running: BTreeMap<String, (usize, usize)>,
    counts: Counts,
    /// What failed, each with its output.
    failures: Vec<String>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

/// How the tests of a program ended.
pub(super) struct Ended {
    counts: Counts,
    /// What it printed about its failures.
    failure: Option<String>,
}

impl Report {
    pub(super) fn new() -> Self {
        let is_terminal = io::stdout().is_terminal();
        Self { start: now(), is_terminal, state: Mutex::default() }
    }

    /// How many tests will run.
    pub(super) fn expect(&self, tests: usize) {
        self.state().total = tests;
    }

    pub(super) fn starts(&self, suite: &str, tests: usize) {
        let mut state = self.state();
        state.running.insert(suite.to_owned(), (0, tests));
        self.draw(&state);
    }

    pub(super) fn test_ended(&self, suite: &str) {
        let mut state = self.state();
        if let Some((ended, _)) = state.running.get_mut(suite) {
            *ended += 1;
        }
        self.draw(&state);
    }

    pub(super) fn ended(&self, suite: &str, ended: Ended, took: Duration) {
        let mut state = self.state();
        state.running.remove(suite);
        state.counts.add(ended.counts);
        self.print(&format!("{}{}, {} s", dotted(suite), ended.counts, took.as_secs()));
        if let Some(failure) = ended.failure {
            state.failures.push(format!("{suite}\n{failure}"));
        }
        self.draw(&state);
    }

    pub(super) fn check(&self, name: &str, outcome: &Result<Outcome, String>) {
        let mut state = self.state();
        self.print(&check::line(name, outcome));
        if let Err(report) = outcome {
            state.failures.push(format!("{name}\n{report}"));
        }
        self.draw(&state);
    }

    pub(super) fn say(&self, line: &str) {
        let state = self.state();
        self.print(line);
        self.draw(&state);
    }

    /// Prints the summary; `false` when something has failed.
    pub(super) fn close(&self) -> bool {
        let state = self.state();
        for failure in &state.failures {
            self.print(&format!("\nfailed: {failure}"));
        }
        self.print(&format!("\nin {} s\n{}", self.start.elapsed().as_secs(), state.counts));
        state.failures.is_empty()
    }

    /// In the place of the line that moves.
    fn print(&self, text: &str) {
        self.erase();
        // Without standard output there is no reader to inform.
        writeln!(io::stdout(), "{text}").ok();
    }

    fn erase(&self) {
        if self.is_terminal {
            write!(io::stdout(), "\r\x1b[K").ok();
        }
    }

    /// The line that moves.
    fn draw(&self, state: &State) {
        if !self.is_terminal {
            return;
        }
        let suites = state.running.iter();
        let suites: Vec<_> =
            suites.map(|(name, (ended, all))| format!("{name} {ended}/{all}")).collect();
        let running: usize = state.running.values().map(|(ended, _)| ended).sum();
        let ended = state.counts.all() + running;
        let seconds = self.start.elapsed().as_secs();
        let line = format!("{seconds} s, {ended} of {}: {}", state.total, suites.join(", "));
        self.erase();
        write!(io::stdout(), "{line:.WIDTH$}").and_then(|()| io::stdout().flush()).ok();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn all(self) -> usize {
        self.passed + self.failed + self.skipped
    }

    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// `test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured; …`
    fn of_line(line: &str) -> Option<Self> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let mut numbers = counts.split("; ").map(|part| part.split(' ').next()?.parse().ok());
        let mut next = || numbers.next()?;
        Some(Self { passed: next()?, failed: next()?, skipped: next()? })
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

impl Ended {
    /// A program that ends badly without a failed test has failed as a whole.
    pub(super) fn of(output: &str, status: Option<ExitStatus>) -> Self {
        let mut counts = Counts::default();
        output.lines().filter_map(Counts::of_line).for_each(|line| counts.add(line));
        if status.is_some_and(|status| status.success()) {
            return Self { counts, failure: None };
        }
        if counts.failed == 0 {
            counts.failed = 1;
        }
        let failure = match output.find("\nfailures:\n") {
            Some(start) => output.get(start..).unwrap_or_default().trim().to_owned(),
            None => format!("{output}{status:?}"),
        };
        Self { counts, failure: Some(failure) }
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a test took is real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// What every terminal has room for.
const WIDTH: usize = 79;

#[cfg(test)]
mod tests {
    use super::{Counts, Ended};

    #[test]
    fn the_numbers_of_a_line_are_read() {
        let line =
            "test result: FAILED. 12 passed; 1 failed; 3 ignored; 0 measured; 9 filtered out";
        let counts = Counts::of_line(line).unwrap();
        assert_eq!(counts.to_string(), "12 passed, 1 failed, 3 skipped");
        assert!(Counts::of_line("test result of nothing").is_none());
    }

    #[test]
    fn a_program_that_was_killed_has_failed_with_all_that_it_printed() {
        let ended = Ended::of("running 2 tests\ntest a ... ok\n", None);
        assert_eq!(ended.counts.to_string(), "0 passed, 1 failed");
        assert!(ended.failure.unwrap().contains("test a ... ok"));
    }
}
