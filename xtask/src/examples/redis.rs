//! The Redis of the examples: a process of its own, without persistence.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};

use crate::redis;

/// Ends when it is dropped.
pub(super) struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    pub(super) fn start() -> Result<Self, String> {
        redis::prepare()?;
        let port = free_port()?;
        let mut command = Command::new(redis::program());
        command.args(["--bind", "127.0.0.1", "--save", "", "--port", &port.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let log = child.stdout.take();
        let server = Self { child, port };
        // Redis ignores a log that nobody reads any more.
        let mut lines = log.into_iter().flat_map(|log| BufReader::new(log).lines());
        let is_ready = lines.any(|line| line.is_ok_and(|line| line.contains(READY)));
        is_ready.then_some(server).ok_or_else(|| format!("{command:?} ended at once"))
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It has no data, and may have ended by itself.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// One that no other process had a moment ago.
pub(super) fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}

const READY: &str = "Ready to accept connections";
