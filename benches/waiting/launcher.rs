//! How the processes of a contender are started.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use lockable_benches::worker::Flavour;
use lockable_benches::{Cores, peers};

use crate::contender::Contender;

/// A program that works as `lockable_benches::worker` describes, and its first arguments.
pub(crate) struct Launcher {
    program: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(&'static str, PathBuf)>,
}

impl Launcher {
    /// Builds or installs what is missing. The error is why there is none.
    pub(crate) fn prepare(contender: Contender) -> Result<Self, String> {
        match contender {
            Contender::Rslock | Contender::DistributedLock => rust_peer(contender),
            Contender::RedisPy => python_peer(),
            Contender::Redlock => node_peer(),
            Contender::Ours
            | Contender::OursFair
            | Contender::Limit
            | Contender::Mutex
            | Contender::MutexAndPing
            | Contender::Bare
            | Contender::Ping => this_bench(contender),
        }
    }

    pub(crate) fn command(&self, url: &str, cores: Cores) -> Command {
        let mut command = cores.command(&self.program);
        command.args(&self.arguments).arg(url).envs(self.variables.iter().cloned());
        command
    }
}

fn this_bench(contender: Contender) -> Result<Launcher, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let arguments = vec!["--worker".into(), contender.name().into()];
    Ok(Launcher { program, arguments, variables: Vec::new() })
}

fn rust_peer(contender: Contender) -> Result<Launcher, String> {
    let arguments = [contender.name(), Flavour::MultiThread.name()].map(Into::into).to_vec();
    Ok(Launcher { program: peers::rust()?, arguments, variables: Vec::new() })
}

fn python_peer() -> Result<Launcher, String> {
    let arguments = vec![peers::source("redis_py.py").into()];
    Ok(Launcher { program: peers::python()?, arguments, variables: Vec::new() })
}

fn node_peer() -> Result<Launcher, String> {
    let variables = vec![("NODE_PATH", peers::node()?)];
    let arguments = vec![peers::source("redlock.js").into()];
    Ok(Launcher { program: "node".into(), arguments, variables })
}
