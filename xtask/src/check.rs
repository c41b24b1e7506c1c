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
    /// Nothing but a Rust toolchain: the test command runs it too.
    Toolchain,
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

/// Runs the wanted checks and prints a line for each; `false` when one has failed.
pub(crate) fn run_all(checks: &[Check], is_wanted: impl Fn(&Check) -> bool) -> bool {
    let failures = checks.iter().filter(|check| is_wanted(check)).filter(|check| !run(check));
    failures.count() == 0
}

/// The name is printed first, because some checks take minutes.
fn run(check: &Check) -> bool {
    print!("{:.<28} ", format!("{} ", check.name));
    // Without standard output there is no reader to inform.
    io::stdout().flush().ok();
    let outcome = (check.run)();
    match &outcome {
        Ok(Outcome::Passed(notes)) => println!("ok{}", indented(notes)),
        Ok(Outcome::Skipped(why)) => println!("skipped ({why})"),
        Err(report) => println!("failed{}", indented(report)),
    }
    outcome.is_ok()
}

fn indented(text: &str) -> String {
    text.lines().flat_map(|line| ["\n    ", line]).collect()
}
