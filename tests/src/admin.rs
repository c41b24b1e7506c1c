//! A look into a server, past everything that is tested.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use redis::{Client, Connection, FromRedisValue, RedisResult, Value};

use crate::wait;

/// A blocking connection of the test's own to a server, for preparing and asserting.
///
/// A fault is a panic, but in [`try_command`](Self::try_command). The connection does not come back
/// after the server was restarted; [`Server::admin`](crate::Server::admin) makes a new one.
pub struct Admin {
    connection: Mutex<Connection>,
}

impl Admin {
    /// Connects to a server by its URL.
    pub fn connect(url: &str) -> Self {
        Self::try_connect(url).expect("the server of the test answers")
    }

    pub(crate) fn try_connect(url: &str) -> RedisResult<Self> {
        let connection = Client::open(url)?.get_connection_with_timeout(PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { connection: Mutex::new(connection) })
    }

    /// Sends a command and gives its reply as `T`: `admin.command::<u64>(&["INCR", "n"])`.
    pub fn command<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let reply = self.try_command(words);
        let typed = reply.and_then(|reply| Ok(redis::from_redis_value(reply)?));
        typed.unwrap_or_else(|error| panic!("{words:?} failed: {error}"))
    }

    /// Sends a command of which the reply may be an error.
    ///
    /// # Errors
    ///
    /// The server's, and those of the connection.
    pub fn try_command(&self, words: &[&str]) -> RedisResult<Value> {
        let (name, arguments) = words.split_first().expect("a command has a name");
        let mut connection = self.connection.lock().expect("no command panics under the lock");
        redis::cmd(name).arg(arguments).query(&mut connection)
    }

    /// The same with arguments that may be any bytes.
    ///
    /// # Errors
    ///
    /// The server's, and those of the connection.
    pub fn try_bytes(&self, words: &[&[u8]]) -> RedisResult<Value> {
        let mut connection = self.connection.lock().expect("no command panics under the lock");
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(*word);
        }
        command.query(&mut connection)
    }

    /// Sends commands in one write, so that the server runs none of another client in between.
    pub fn together(&self, commands: &[&[&str]]) {
        let mut pipeline = redis::pipe();
        for words in commands {
            let (name, arguments) = words.split_first().expect("a command has a name");
            pipeline.cmd(name).arg(arguments).ignore();
        }
        let mut connection = self.connection.lock().expect("no command panics under the lock");
        let done: RedisResult<()> = pipeline.query(&mut connection);
        done.unwrap_or_else(|error| panic!("{commands:?} failed: {error}"));
    }

    /// The keys that match a glob-style pattern, sorted.
    pub fn keys(&self, pattern: &str) -> Vec<String> {
        let mut keys: Vec<String> = self.command(&["KEYS", pattern]);
        keys.sort();
        keys
    }

    /// The text at a key; `None` when there is none.
    pub fn get(&self, key: &str) -> Option<String> {
        self.command(&["GET", key])
    }

    /// Puts a text at a key, without an expiry.
    pub fn set(&self, key: &str, value: &str) {
        self.command::<()>(&["SET", key, value]);
    }

    /// Deletes a key, as another program on the server would.
    pub fn del(&self, key: &str) {
        self.command::<()>(&["DEL", key]);
    }

    /// The milliseconds until a key expires, as the server encodes them: -2 without the key, -1 without
    /// an expiry.
    pub fn pttl(&self, key: &str) -> i64 {
        self.command(&["PTTL", key])
    }

    /// The type of a key's value, `"none"` without the key.
    pub fn type_of(&self, key: &str) -> String {
        self.command(&["TYPE", key])
    }

    /// How often the server ran a command since its start, or since
    /// [`reset_statistics`](Self::reset_statistics).
    ///
    /// Commands inside scripts count too, and so do those of this connection. The name is as in
    /// INFO commandstats: `"set"`, and `"client|list"` for a subcommand.
    pub fn command_calls(&self, name: &str) -> u64 {
        let start = format!("cmdstat_{}:calls=", name.to_lowercase());
        let statistics = self.info("commandstats");
        let line = statistics.lines().find_map(|line| line.strip_prefix(&start));
        line.and_then(|rest| rest.split(',').next()).map_or(0, |calls| calls.parse().unwrap())
    }

    /// Starts the statistics of [`command_calls`](Self::command_calls) again at zero.
    pub fn reset_statistics(&self) {
        self.command::<()>(&["CONFIG", "RESETSTAT"]);
    }

    /// A section of INFO.
    pub fn info(&self, section: &str) -> String {
        self.command(&["INFO", section])
    }

    /// Makes the server a replica of the one at `primary`, and returns when it has that one's data.
    pub fn follow(&self, primary: SocketAddr) {
        let (host, port) = (primary.ip().to_string(), primary.port().to_string());
        self.command::<()>(&["REPLICAOF", &host, &port]);
        wait::until(PATIENCE, || self.info("replication").contains("master_link_status:up"));
    }

    /// Returns when a replica has all that was written before.
    pub fn wait_for_replica(&self) {
        // WAIT is about what its own connection has written.
        self.set("harness:written", "");
        self.del("harness:written");
        let copied = self.command::<usize>(&["WAIT", "1", "10000"]);
        assert!(copied >= 1, "no replica has it");
    }

    /// Makes a replica a server of its own, with the data that it has.
    pub fn promote(&self) {
        self.command::<()>(&["REPLICAOF", "NO", "ONE"]);
    }

    /// Deletes every key of every database.
    pub fn flush(&self) {
        self.command::<()>(&["FLUSHALL"]);
    }
}

impl fmt::Debug for Admin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Admin").finish_non_exhaustive()
    }
}

/// Longer than any server here takes on a busy machine, shorter than a test runner's patience.
const PATIENCE: Duration = Duration::from_secs(60);
