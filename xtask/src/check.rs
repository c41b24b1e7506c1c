//! What a check is, and how one is told.

use std::io::{self, Write};

/// One line of the list.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) needs: Needs,
    pub(crate) run: fn() -> Outcome,
}

/// What must be installed for a check.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing but a Rust toolchain: the test command runs it too.
    Toolchain,
    /// Another tool, or more time than a test run should take.
    More,
}

/// How a check ended, with what there is to say about it.
pub(crate) enum Outcome {
    Ok(String),
    Skipped(String),
    Failed(String),
}

impl From<Result<String, String>> for Outcome {
    fn from(result: Result<String, String>) -> Self {
        result.map_or_else(Self::Failed, Self::Ok)
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
    // Without standard output there is nobody to tell.
    io::stdout().flush().ok();
    let outcome = (check.run)();
    match &outcome {
        Outcome::Ok(notes) => println!("ok{}", indented(notes)),
        Outcome::Skipped(why) => println!("skipped ({why})"),
        Outcome::Failed(report) => println!("failed{}", indented(report)),
    }
    !matches!(outcome, Outcome::Failed(_))
}

fn indented(text: &str) -> String {
    text.lines().flat_map(|line| ["\n    ", line]).collect()
}
