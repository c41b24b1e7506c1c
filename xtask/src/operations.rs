//! `cargo xtask operations`: listing, revoking and running programs under locks, as often as shows a rare failure; with
//! `--calls`, sets, permits and other kinds of calls.

use std::time::Instant;

use crate::shell;

pub(crate) const USAGE: &str = "operations [--calls]";

pub(crate) fn run(mut arguments: impl Iterator<Item = String>) -> Result<bool, String> {
    match arguments.next().as_deref() {
        None => Ok(operations()),
        Some("--calls") => Ok(PARTS.iter().filter(|part| !part.run()).count() == 0),
        Some(other) => Err(format!("unknown argument `{other}`; usage: cargo xtask {USAGE}")),
    }
}

fn operations() -> bool {
    let packages = ["-p", "lockable-tests", "-p", "lockable-cli"];
    let tests = ["--test", "operations", "--test", "cli", "--no-fail-fast"];
    long_form(&[&packages[..], &tests].concat())
}

/// Tests of one kind of call.
struct Part {
    name: &'static str,
    /// The arguments of `cargo test`, for one binary each.
    tests: &'static [&'static [&'static str]],
}

const PARTS: [Part; 6] = [
    Part {
        name: "sets",
        tests: &[
            &["--test", "crowds", "sets::"],
            &["--test", "contract", "of_calls_at_the_same_moment", "--", "--include-ignored"],
            &["--test", "faults", "sets::"],
        ],
    },
    Part {
        name: "permits",
        tests: &[
            &["--test", "contract", "verbs::permits"],
            &["--test", "faults", "permits::"],
            &["--test", "crowds", "permits::"],
        ],
    },
    Part { name: "leaders", tests: &[&["--test", "faults", "leaders::"]] },
    Part {
        name: "once",
        tests: &[
            &["--test", "contract", "once::", "--", "--include-ignored"],
            &["--test", "faults", "once::"],
        ],
    },
    Part {
        name: "tickets",
        tests: &[
            &["--test", "contract", "tickets::", "--", "--include-ignored"],
            &["--test", "faults", "tickets::"],
        ],
    },
    Part { name: "other clients", tests: &[&["--test", "languages", "beside::"]] },
];

impl Part {
    #[expect(clippy::disallowed_methods, reason = "cargo runs in real time")]
    fn run(&self) -> bool {
        let start = Instant::now();
        let failed = self.tests.iter().filter(|tests| {
            let package = ["-p", "lockable-tests"];
            !long_form(&[&package[..], tests].concat())
        });
        let is_good = failed.count() == 0;
        let outcome = if is_good { "passed" } else { "FAILED" };
        println!("{}: {outcome} after {} s", self.name, start.elapsed().as_secs());
        is_good
    }
}

fn long_form(arguments: &[&str]) -> bool {
    let mut cargo = shell::cargo(&["test"]);
    shell::show(cargo.args(arguments).env("LOCKABLE_LONG_FORM", "1"))
}
