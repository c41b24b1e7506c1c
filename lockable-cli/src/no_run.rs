//! What there is of `lockable run` where there are no process groups and signals of Unix: its refusal.

use std::process::ExitCode;

use crate::arguments::{Command, Connection, End, Run, Watcher};
use crate::exit::Exit;
use crate::failure::Failure;

#[expect(clippy::unused_async, reason = "as where it waits for a lock")]
pub(crate) async fn run(_: &Connection, _: Run, _: bool) -> Result<Exit, Failure> {
    Err(refusal())
}

#[expect(clippy::unused_async, reason = "as where it waits for a command")]
pub(crate) async fn watch(_: Watcher, _: bool) -> Result<u8, Failure> {
    Err(refusal())
}

pub(crate) fn become_command(_: &Command) -> Failure {
    refusal()
}

pub(crate) fn end(_: End) -> Exit {
    Exit::Code(refusal().code())
}

pub(crate) fn leave(exit: Exit) -> ExitCode {
    match exit {
        Exit::Code(code) => ExitCode::from(code),
        Exit::Signal(_) => ExitCode::from(refusal().code()),
    }
}

pub(crate) fn hear_children() {}

/// Ctrl-C, by the number that Unix gives it.
pub(crate) async fn asked_to_end() -> i32 {
    match tokio::signal::ctrl_c().await {
        Ok(()) => 2,
        Err(_) => std::future::pending().await,
    }
}

fn refusal() -> Failure {
    Failure::usage(
        "`lockable run` ends a command by the process groups and signals of Unix, and does not run on this system; \
         write a program with lockable-runtime, or use a machine with Linux or macOS",
    )
}
