//! Processes whose children are made without the `fork` of libc.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Program, preload, skip};

/// How a process makes a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By the system call.
    Clone,
    /// By the function that runs no handlers.
    WithoutHandlers,
    /// By the system call; both are the first process of a PID namespace, so they have the same process id.
    SameId,
}

impl Way {
    /// Prepares a program that makes its children so, with a library in `directory`. None where that cannot
    /// be had here; then a line says so.
    pub fn of(self, program: &str, directory: &Path) -> Option<Program> {
        if !preload::is_possible() {
            skip::say("other forks than libc's, which there are on Linux with a C compiler, `cc`");
            return None;
        }
        if self == Self::SameId && unshare("true").run(LIMIT).is_err() {
            skip::say("a child with its parent's process id, because `unshare --pid` fails here");
            return None;
        }
        Some(self.prepare(program, &library(directory)))
    }

    fn prepare(self, program: &str, library: &Path) -> Program {
        let started = match self {
            Self::SameId => unshare("env"),
            Self::Clone | Self::WithoutHandlers => Program::new("env"),
        };
        // By `env`, so that no other program has it.
        let preloaded = started.arg(&format!("LD_PRELOAD={}", library.display()));
        preloaded.arg(&format!("FORK={}", self.name())).arg(program)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Clone => "clone",
            Self::WithoutHandlers => "_Fork",
            Self::SameId => "same id",
        }
    }
}

/// Prepares a program that is the first process of a PID namespace.
fn unshare(program: &str) -> Program {
    let unshare = Program::new("unshare").arg("--user").arg("--map-root-user").arg("--pid");
    unshare.arg("--kill-child").arg(program)
}

fn library(directory: &Path) -> PathBuf {
    let library = directory.join("forks.so");
    preload::compile(include_str!("forks.c"), &library);
    library
}

/// Far more than a start takes.
const LIMIT: Duration = Duration::from_secs(20);
