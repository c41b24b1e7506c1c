//! What the server has done so far.

use std::collections::BTreeMap;
use std::fmt;

use redis::Connection;

use crate::monotonic;

/// A connection of its own, which is quiet between the questions.
pub struct Observer(Connection);

impl fmt::Debug for Observer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Observer").finish_non_exhaustive()
    }
}

/// What a server has done until a time.
#[derive(Debug)]
pub struct Snapshot {
    /// On the monotonic clock.
    pub at: u64,
    /// How often each command was called, by clients and by scripts.
    calls: BTreeMap<String, u64>,
    /// Seconds of processor time.
    cpu: f64,
    /// Bytes of all requests, those of the observer too.
    bytes: u64,
}

impl Observer {
    /// Connects.
    #[must_use]
    pub fn new(url: &str) -> Self {
        let client = redis::Client::open(url).expect("a URL");
        Self(client.get_connection().expect("a connection"))
    }

    /// Looks.
    pub fn look(&mut self) -> Snapshot {
        let before = monotonic();
        let commands = self.info("commandstats");
        let at = before.midpoint(monotonic());
        let calls = commands.lines().filter_map(calls).collect();
        let cpu = self.number("cpu", "used_cpu_user") + self.number("cpu", "used_cpu_sys");
        let bytes = self.text("stats", "total_net_input_bytes").and_then(|text| text.parse().ok());
        Snapshot { at, calls, cpu, bytes: bytes.expect("a number") }
    }

    /// A number that the server gives about itself, by the section and the field of `INFO`.
    pub fn number(&mut self, section: &str, field: &str) -> f64 {
        let value = self.text(section, field);
        value.and_then(|value| value.parse().ok()).expect("a field of this section")
    }

    /// The same for any text; `None` where this server has no such field.
    pub fn text(&mut self, section: &str, field: &str) -> Option<String> {
        let info = self.info(section);
        let value = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value.map(|value| value.trim().to_owned())
    }

    /// For other questions.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.0
    }

    /// Deletes all keys.
    pub fn flush(&mut self) {
        redis::cmd("FLUSHALL").exec(&mut self.0).expect("an answer");
    }

    fn info(&mut self, section: &str) -> String {
        redis::cmd("INFO").arg(section).query(&mut self.0).expect("an answer")
    }
}

impl Snapshot {
    /// How often some commands were called between two.
    #[must_use]
    pub fn calls_since(&self, earlier: &Self, commands: &[&str]) -> u64 {
        let calls = |snapshot: &Self| -> u64 {
            commands.iter().filter_map(|command| snapshot.calls.get(*command)).sum()
        };
        calls(self) - calls(earlier)
    }

    /// How often any command was called between two, scripts' own included, without looking.
    #[must_use]
    pub fn all_calls_since(&self, earlier: &Self) -> u64 {
        let calls = |snapshot: &Self| -> u64 {
            let calls = snapshot.calls.iter().filter(|(command, _)| *command != "info");
            calls.map(|(_, calls)| calls).sum()
        };
        calls(self) - calls(earlier)
    }

    /// Bytes of the requests between two, those of looking too.
    #[must_use]
    pub fn bytes_since(&self, earlier: &Self) -> u64 {
        self.bytes - earlier.bytes
    }

    /// Seconds of processor time that the server took between two.
    #[must_use]
    pub fn cpu_since(&self, earlier: &Self) -> f64 {
        self.cpu - earlier.cpu
    }
}

/// `cmdstat_set:calls=3,usec=…`
fn calls(line: &str) -> Option<(String, u64)> {
    let (command, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
    Some((command.to_owned(), rest.split(',').next()?.parse().ok()?))
}
