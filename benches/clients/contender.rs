//! Who takes part.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use lockable_benches::peers;

use crate::servers::Servers;

/// A client with its settings.
#[derive(Clone, Copy)]
pub(crate) enum Contender {
    Redis,
    RedisTuned,
    Lockable,
}

impl Contender {
    pub(crate) const ALL: [Self; 3] = [Self::Redis, Self::RedisTuned, Self::Lockable];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::RedisTuned => "redis, tuned",
            Self::Lockable => "lockable",
        }
    }

    /// The peers are built where they are missing or old.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn program(self) -> Result<PathBuf, String> {
        match self {
            Self::Redis | Self::RedisTuned => peers::rust(),
            Self::Lockable => env::current_exe().map_err(|error| error.to_string()),
        }
    }

    /// Its process, which works as `load` describes.
    pub(crate) fn command(self, program: &Path, servers: &Servers) -> Command {
        let mut command = Command::new(program);
        match self {
            Self::Redis => command.args(["clients", "defaults"]),
            Self::RedisTuned => command.args(["clients", "tuned"]),
            Self::Lockable => command.arg("--worker"),
        };
        command.arg(servers.url()).args(servers.tags());
        command
    }
}
