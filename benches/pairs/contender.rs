//! Who acquires and releases.

use std::path::PathBuf;
use std::process::Command;

use lockable_benches::contenders::{Bare, Order, Ours, Same};
use lockable_benches::worker::{self, Flavour};
use lockable_benches::{Cores, number_of_cores, peers};

/// A way to lock, in a process of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contender {
    Ours,
    /// The commands of ours through the client alone.
    Same,
    /// `SET NX PX` and a release script: the yardstick.
    Bare,
    Rslock,
    /// Ours as another commit has it: this bench, as it was built there.
    Before,
}

impl Contender {
    pub(crate) const ALL: [Self; 5] =
        [Self::Ours, Self::Same, Self::Bare, Self::Rslock, Self::Before];

    /// What it is called in the tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "lockable",
            Self::Same => "same",
            Self::Bare => "bare",
            Self::Rslock => "rslock",
            Self::Before => "before",
        }
    }

    /// The way to lock that its process has.
    fn role(self) -> &'static str {
        if self == Self::Before { Self::Ours.name() } else { self.name() }
    }

    /// Builds the program that is missing. The error is why there is none.
    pub(crate) fn launcher(self, before: Option<&PathBuf>) -> Result<Launcher, String> {
        let (program, role) = match self {
            Self::Rslock => (peers::rust()?, None),
            Self::Ours | Self::Same | Self::Bare => (this_bench()?, Some("--worker")),
            Self::Before => (program_of(before)?, Some("--worker")),
        };
        Ok(Launcher { contender: self, program, role })
    }
}

/// How a process of a contender is started.
pub(crate) struct Launcher {
    pub(crate) contender: Contender,
    program: PathBuf,
    role: Option<&'static str>,
}

impl Launcher {
    /// The runtime has as many workers as there are cores, also where the process has not all of them.
    pub(crate) fn command(&self, flavour: Flavour, cores: Cores, url: &str) -> Command {
        let mut command = cores.command(&self.program);
        command.args(self.role).args([self.contender.role(), flavour.name(), url]);
        command.env("TOKIO_WORKER_THREADS", number_of_cores().to_string());
        command
    }
}

fn program_of(before: Option<&PathBuf>) -> Result<PathBuf, String> {
    let program = before.filter(|program| program.is_file()).cloned();
    program.ok_or_else(|| "`--before` names no program".to_owned())
}

fn this_bench() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| error.to_string())
}

/// The work of a contender's process.
pub(crate) fn work(name: &str, flavour: Flavour, url: &str) {
    worker::run(flavour, async {
        match name {
            "lockable" => worker::serve(Ours::connect(url, Order::Default).await).await,
            "same" => worker::serve(Same::connect(url).await).await,
            "bare" => worker::serve(Bare::connect(url).await).await,
            _ => panic!("there is no {name}"),
        }
    });
}
