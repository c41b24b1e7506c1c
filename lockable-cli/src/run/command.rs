//! The process that becomes the command: it ends at the latest with its watcher.

use std::io;
use std::os::unix::process::CommandExt;
use std::process;

use crate::arguments::Command;
use crate::failure::{Failure, code};

/// What `lockable __command` does; it returns only where the command cannot be run.
pub(crate) fn become_command(arguments: &Command) -> Failure {
    end_with_parent(arguments.parent);
    let Some((program, rest)) = arguments.command.split_first() else {
        return Failure::internal("no command");
    };
    let error = process::Command::new(program).args(rest).exec();
    let message = format!("cannot run `{}`: {error}", program.to_string_lossy());
    match error.kind() {
        io::ErrorKind::NotFound => Failure::new("not-found", code::NOT_FOUND, message),
        _ => Failure::new("cannot-run", code::CANNOT_RUN, message),
    }
}

/// Where both `lockable` and the watcher are killed, the kernel ends the command. A parent that has ended before this
/// process asked for it has left it to another one.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn end_with_parent(parent: i32) {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    // Where it is refused, a watcher that lives ends the command.
    set_parent_process_death_signal(Some(Signal::KILL)).ok();
    if getppid().is_none_or(|now| now.as_raw_pid() != parent) {
        process::exit(code::INTERNAL.into());
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn end_with_parent(_parent: i32) {}
