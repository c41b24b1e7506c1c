//! What the server has done so far.

use std::collections::BTreeMap;

use lockable_benches::monotonic;
use redis::Connection;

/// A connection of its own, which is quiet between the questions.
pub(crate) struct Observer(Connection);

/// How often each command was called until a time.
pub(crate) struct Snapshot {
    /// On the monotonic clock.
    pub(crate) at: u64,
    calls: BTreeMap<String, u64>,
}

impl Observer {
    pub(crate) fn new(url: &str) -> Self {
        let client = redis::Client::open(url).expect("a URL");
        Self(client.get_connection().expect("a connection"))
    }

    pub(crate) fn look(&mut self) -> Snapshot {
        let before = monotonic();
        let text: String =
            redis::cmd("INFO").arg("commandstats").query(&mut self.0).expect("an answer");
        let at = before.midpoint(monotonic());
        Snapshot { at, calls: text.lines().filter_map(calls).collect() }
    }
}

impl Snapshot {
    /// How often some commands were called between two.
    pub(crate) fn calls_since(&self, earlier: &Self, commands: &[&str]) -> u64 {
        let calls = |snapshot: &Self| -> u64 {
            commands.iter().filter_map(|command| snapshot.calls.get(*command)).sum()
        };
        calls(self) - calls(earlier)
    }
}

/// `cmdstat_set:calls=3,usec=…`
fn calls(line: &str) -> Option<(String, u64)> {
    let (command, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
    Some((command.to_owned(), rest.split(',').next()?.parse().ok()?))
}
