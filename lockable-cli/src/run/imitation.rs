//! How this process ends as its command did.

use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use rustix::process::{Signal, getpid, kill_process};

use crate::arguments::End;
use crate::exit::Exit;
use crate::failure::code;

pub(crate) fn leave(exit: Exit) -> ExitCode {
    match exit {
        Exit::Code(code) => ExitCode::from(code),
        Exit::Signal(number) => die(number),
    }
}

/// Signals have handlers here, which another program in this process has not.
fn die(number: i32) -> ExitCode {
    if IMITATED.iter().any(|signal| signal.as_raw() == number)
        && let Ok(program) = own_program()
    {
        // It returns only where there is no such program any more.
        drop(Command::new(program).args([End::NAME, "--signal", &number.to_string()]).exec());
    }
    ExitCode::from(number_of(number))
}

/// The program of this process, also where its file was replaced since.
pub(super) fn own_program() -> io::Result<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() { Ok(running.to_owned()) } else { env::current_exe() }
}

/// What `lockable __end` does; it returns only where the signal is ignored.
pub(crate) fn end(arguments: End) -> Exit {
    if let Some(signal) = Signal::from_named_raw(arguments.signal) {
        kill_process(getpid(), signal).ok();
    }
    Exit::Code(number_of(arguments.signal))
}

/// As a shell has it.
fn number_of(signal: i32) -> u8 {
    u8::try_from(signal).map_or(code::INTERNAL, |number| code::SIGNAL.saturating_add(number))
}

/// Those that leave no image of this process behind.
const IMITATED: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];
