//! The operator's tool, which comes with the servers.

use std::env;
use std::time::Duration;

use super::Cluster;
use crate::program::Program;
use crate::server::{ADMIN, Server};

impl Cluster {
    /// Moves that number of slots from one master to another one as operators do, by `redis-cli --cluster reshard`.
    ///
    /// # Errors
    ///
    /// What the tool said, when it ended with another status than zero.
    pub fn reshard_by_tool(&self, count: usize, from: &Server, to: &Server) -> Result<(), String> {
        self.wait_until_healthy();
        let (from, to) = (self.node(from).id(), self.node(to).id());
        let any = self.running().next().ok_or("no node runs")?.server.addr().to_string();
        let words = ["--cluster", "reshard", &any, "--cluster-from", &from, "--cluster-to", &to];
        let count = count.to_string();
        let answers = ["--cluster-slots", &count, "--cluster-yes", "--no-auth-warning"];
        let login = ["--user", ADMIN, "-a", ADMIN];
        let words = [&words[..], &answers, &login].concat();
        let tool = words.into_iter().fold(Program::new(program()), Program::arg);
        tool.run(LIMIT).map(drop)
    }
}

/// Whether [`Cluster::reshard_by_tool`] can be called: the tool is installed.
pub fn has_tool() -> bool {
    Program::new(program()).arg("--version").run(LIMIT).is_ok()
}

/// The one of the server that the tests use, or else any: their protocol is the same.
fn program() -> String {
    let server = env::var("LOCKABLE_REDIS_SERVER").unwrap_or_default();
    let beside = server.strip_suffix("-server").map(|start| format!("{start}-cli"));
    let is_there = |path: &String| Program::new(path).arg("--version").run(LIMIT).is_ok();
    beside.filter(is_there).unwrap_or_else(|| "redis-cli".to_owned())
}

/// Far more than all slots take.
const LIMIT: Duration = Duration::from_secs(120);
