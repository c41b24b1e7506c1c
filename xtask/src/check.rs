//! What a check is, and how its end is reported.

use std::io::{self, Write};

/// One line of the list.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) needs: Needs,
    /// The error is the report of what is wrong.
    pub(crate) run: fn() -> Result<Outcome, String>,
}

/// What must be installed for a check.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// A Rust toolchain and a second: the test command runs it first.
    Toolchain,
    /// The pages of the documentation: the test command runs it when the examples of the documentation have.
    Pages,
    /// Another tool, or more time than a test run should take.
    More,
}

/// How a check ended that found nothing wrong.
pub(crate) enum Outcome {
    /// With what there is to say about it, or an empty text.
    Passed(String),
    /// With the reason.
    Skipped(String),
}

impl Outcome {
    pub(crate) fn passed() -> Self {
        Self::Passed(String::new())
    }
}

/// Runs checks one after the other and prints a line for each; `false` when one has failed.
pub(crate) fn run_all<'a>(checks: impl Iterator<Item = &'a Check>) -> bool {
    checks.filter(|check| !run(check)).count() == 0
}

/// The name is printed first, because some checks take minutes.
fn run(check: &Check) -> bool {
    print!("{}", dotted(check.name));
    // Without standard output there is no reader to inform.
    io::stdout().flush().ok();
    let outcome = (check.run)();
    println!("{}", described(&outcome));
    outcome.is_ok()
}

/// The whole line of a check that has ended.
pub(crate) fn line(name: &str, outcome: &Result<Outcome, String>) -> String {
    dotted(name) + &described(outcome)
}

/// The column of names.
pub(crate) fn dotted(name: &str) -> String {
    format!("{:.<28} ", format!("{name} "))
}

fn described(outcome: &Result<Outcome, String>) -> String {
    match outcome {
        Ok(Outcome::Passed(notes)) => format!("ok{}", indented(notes)),
        Ok(Outcome::Skipped(why)) => format!("skipped ({why})"),
        Err(report) => format!("failed{}", indented(report)),
    }
}

fn indented(text: &str) -> String {
    text.lines().flat_map(|line| ["\n    ", line]).collect()
}
