//! The project's own commands.
//!
//! - `cargo xtask test` installs what the tests need, checks what every toolchain can check, and
//!   runs every test; with a name, the tests that it matches.
//! - `cargo xtask lint` installs what the checks need, and runs the complete list of them.
//! - `cargo xtask api` writes the list of what is public in `lockable-runtime` again.
//! - `cargo xtask counts` counts instructions, system calls and commands of an acquire with its release.
//! - `cargo xtask simulate` runs the simulation of the client with many seeds, or shows one.
//! - `cargo xtask chaos` runs processes under locks, while servers, networks and processes fail.
//! - `cargo xtask mutants` puts known bugs into a copy of the sources, and runs the test that must catch each.
//! - `cargo xtask dist` builds a static `lockable` and packs it with its manual pages and completions.
//! - `cargo xtask pictures` draws the pictures of the documentation, with the data beside each.
//! - `cargo xtask examples` builds and runs the examples that have dependencies of their own.
//! - `cargo xtask timings` measures how long things take, beside the bounds that are promised.
//! - `cargo xtask operations` runs the tests of an operator's commands with their full counts.

#![forbid(unsafe_code)]

mod api;
mod apt;
mod chaos;
mod check;
mod counts;
mod dependencies;
mod dist;
mod examples;
mod lint;
mod mutants;
mod operations;
mod packages;
mod pictures;
mod python;
mod redis;
mod rustdoc;
mod shell;
mod simulate;
mod test;
mod timings;
mod tools;
mod workspace;

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    let is_done = run().unwrap_or_else(|problem| {
        eprintln!("{problem}");
        false
    });
    if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// `false` when something has failed whose report is in the output already.
fn run() -> Result<bool, String> {
    if rustdoc::is_this() {
        return Ok(rustdoc::run());
    }
    match env::args().nth(1).as_deref() {
        Some("test") => test::run(env::args().skip(2)),
        Some("lint") => Ok(lint::run()),
        Some("api") => api::write(),
        Some("dist") => dist::run(),
        Some("examples") => Ok(examples::run()),
        Some("counts") => counts::run(env::args().skip(2)),
        Some("pictures") => pictures::run(env::args().skip(2)),
        Some("timings") => timings::run(env::args().skip(2)),
        Some("operations") => operations::run(env::args().skip(2)),
        Some("mutants") => mutants::run(env::args().skip(2)),
        Some("chaos") => chaos::run(env::args().skip(2)),
        Some("simulate") => simulate::run(env::args().skip(2)),
        _ => Err(format!(
            "usage: cargo xtask <{} | lint | api | dist | examples | {} | {} | {} | {} | {} | {} | {}>",
            test::USAGE,
            timings::USAGE,
            counts::USAGE,
            operations::USAGE,
            pictures::USAGE,
            simulate::USAGE,
            chaos::USAGE,
            mutants::USAGE
        )),
    }
}
