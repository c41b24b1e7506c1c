//! The project's own commands.
//!
//! - `cargo xtask test` installs what the tests need, checks what every toolchain can check, and
//!   runs every test.
//! - `cargo xtask lint` runs the complete list of checks.

mod apt;
mod check;
mod dependencies;
mod functions;
mod lint;
mod python;
mod redis;
mod shell;
mod test;
mod workspace;

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    match env::args().nth(1).as_deref() {
        Some("test") => test::run(),
        Some("lint") => lint::run(),
        _ => {
            eprintln!("usage: cargo xtask <test | lint>");
            ExitCode::FAILURE
        }
    }
}
