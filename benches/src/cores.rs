//! Where the server and the processes that lock run.

use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::thread::available_parallelism;

use crate::Server;

/// Which cores a server and a process that locks have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cores {
    /// Where the system puts them.
    Any,
    /// The server has the first one, and all other processes the rest.
    Apart,
}

impl Cores {
    /// Apart, if that is possible: on a virtual machine a `PING` within a core may take a fifth of one
    /// between two, and the system changes its mind about where to put whom from second to second.
    #[must_use]
    pub fn apart() -> Self {
        let mut taskset = Command::new("taskset");
        taskset.args(["--cpu-list", "0,1", "true"]).stderr(Stdio::null());
        if taskset.status().is_ok_and(|status| status.success()) {
            return Self::Apart;
        }
        println!("note: no `taskset` or no second core here, so the server shares its core");
        Self::Any
    }

    /// Starts a server.
    #[must_use]
    pub fn server(self) -> Server {
        match self {
            Self::Any => Server::start(),
            Self::Apart => Server::start_on_first_core(),
        }
    }

    /// A program that locks.
    pub fn command(self, program: impl AsRef<OsStr>) -> Command {
        match self {
            Self::Any => Command::new(program),
            Self::Apart => {
                let last = number_of_cores().max(2) - 1;
                let mut taskset = Command::new("taskset");
                taskset.arg("--cpu-list").arg(format!("1-{last}")).arg(program);
                taskset
            }
        }
    }
}

/// Those that this process may use.
#[must_use]
pub fn number_of_cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}
