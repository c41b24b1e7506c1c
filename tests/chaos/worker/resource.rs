//! What the locks protect: lists on another server, which take a token only if it is not older than the last one.

use std::time::Duration;

use lockable_runtime::{Lease, fencing};
use redis::{Client, Cmd, Connection, RedisResult};

use crate::journal::{Journal, boot_time};

#[derive(Clone)]
pub(crate) struct Resource(Client);

impl Resource {
    pub(crate) fn new(url: &str) -> Self {
        Self(Client::open(url).unwrap())
    }

    /// One write, on a thread that may block.
    pub(crate) fn write(&self, journal: &Journal, lease: &Lease) {
        let (key, token) = (lease.key().as_str(), u64::from(lease.fencing_token()));
        self.put(journal, key, token, || lease.is_held());
    }

    pub(crate) fn put(
        &self,
        journal: &Journal,
        key: &str,
        token: u64,
        is_held: impl FnOnce() -> bool,
    ) {
        // The same token may be there twice.
        let place = self.retried(|connection| script(key, token).query(connection));
        let at = boot_time();
        let belief = if is_held() { "held" } else { "over" };
        match place {
            Ok(place) => write(journal, key, token, place, at, belief),
            Err(error) if error.code() == Some("FENCED") => {
                write(journal, key, token, 0, at, belief);
            }
            Err(error) => panic!("{UNDISTURBED}: {error}"),
        }
    }

    /// A message with a ticket, which is delivered twice.
    pub(crate) fn leave_ticket(&self, text: &str) {
        let mut push = redis::cmd("LPUSH");
        push.arg(MESSAGES).arg(text).arg(text);
        self.retried(|connection| push.exec(connection)).expect(UNDISTURBED);
    }

    /// The newest message that no call has received.
    pub(crate) fn take_ticket(&self) -> Option<String> {
        let mut pop = redis::cmd("LPOP");
        pop.arg(MESSAGES);
        self.retried(|connection| pop.query(connection)).expect(UNDISTURBED)
    }

    /// A stop of the process interrupts what it does.
    fn retried<T>(&self, request: impl Fn(&mut Connection) -> RedisResult<T>) -> RedisResult<T> {
        let try_once = |_| {
            let mut connection = self.0.get_connection_with_timeout(Duration::from_secs(30))?;
            request(&mut connection)
        };
        let mut tries = (0..TRIES).map(try_once).skip_while(is_interrupted);
        tries.next().expect("a process is stopped from time to time only")
    }
}

const MESSAGES: &str = "messages";
const UNDISTURBED: &str = "nothing disturbs the resource";

fn is_interrupted<T>(outcome: &RedisResult<T>) -> bool {
    outcome.as_ref().is_err_and(redis::RedisError::is_io_error)
}

const TRIES: usize = 10;

fn write(journal: &Journal, key: &str, token: u64, place: u64, at: u64, belief: &str) {
    journal.write(format_args!("effect {key} {token} {place} {at} {belief}"));
}

fn script(key: &str, token: u64) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(fencing::redis_script("return redis.call('RPUSH', KEYS[1], ARGV[1])"));
    command.arg(2).arg(format!("fence:{key}")).arg(format!("list:{key}")).arg(token).arg(token);
    command
}
