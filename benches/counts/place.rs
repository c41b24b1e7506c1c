//! What the counts depend on, besides the code.

use std::fmt;
use std::fs;
use std::process::Command;

use lockable_benches::{Observer, Server};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) compiler: String,
    pub(crate) libc: String,
    pub(crate) processor: String,
    /// `Redis 7.0.15`
    pub(crate) server: String,
}

impl Place {
    pub(crate) fn here() -> Result<Self, String> {
        let processors = fs::read_to_string("/proc/cpuinfo").map_err(|error| error.to_string())?;
        let model = processors.lines().find(|line| line.starts_with("model name"));
        let model = model.and_then(|line| line.split_once(": ")).ok_or("an unknown processor")?;
        let compiler = said("rustc", "--version")?;
        Ok(Self {
            compiler: compiler.split(" (").next().unwrap_or_default().to_owned(),
            libc: said("getconf", "GNU_LIBC_VERSION")?,
            processor: model.1.to_owned(),
            server: server(),
        })
    }

    /// `Redis` and the first two numbers: what the commands depend on.
    pub(crate) fn series(&self) -> (&str, Vec<u32>) {
        let (name, version) = self.server.split_once(' ').unwrap_or((&self.server, ""));
        (name, version.split('.').take(2).filter_map(|number| number.parse().ok()).collect())
    }
}

/// Valkey says a version of Redis too.
fn server() -> String {
    let server = Server::start();
    let mut observer = Observer::new(&server.url());
    let mut version = |name, field| Some(format!("{name} {}", observer.text("server", field)?));
    let version = version("Valkey", "valkey_version").or_else(|| version("Redis", "redis_version"));
    version.expect("a version")
}

fn said(program: &str, argument: &str) -> Result<String, String> {
    let output = Command::new(program).arg(argument).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { compiler, libc, processor, server } = self;
        write!(formatter, "{server}, {compiler}, {libc}, {processor}")
    }
}
