//! The plain commands of an acquisition, and what their replies say.
//!
//! See "Why does acquiring use `SET NX GET`, and releasing a Lua script?" in DESIGN.md.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisWrite, ToRedisArgs, Value};

use crate::core::backend::Attempt;
use crate::core::naming::namespace::{Companion, Namespace};
use crate::core::types::key::LockKey;
use crate::core::types::owner::{is_done, unmarked};
use crate::core::types::slot::Slot;

pub(crate) fn pipeline(commands: impl IntoIterator<Item = Cmd>) -> Pipeline {
    let commands = commands.into_iter();
    let mut pipeline = Pipeline::with_capacity(commands.size_hint().0);
    for command in commands {
        pipeline.add_command(command);
    }
    pipeline
}

pub(crate) fn owner(attempt: &Attempt) -> Cmd {
    command("GET", 2, attempt.key.as_str())
}

pub(crate) fn count_taken(keys: &[LockKey]) -> Cmd {
    let mut count = Cmd::new();
    count.arg("EXISTS");
    for key in keys {
        count.arg(key.as_str());
    }
    count
}

pub(crate) fn count(namespace: &Namespace, attempt: &Attempt) -> Cmd {
    command("INCR", 2, namespace.fence(attempt.slot))
}

pub(crate) fn empty_script() -> Cmd {
    command("EVAL", 3, "").arg(0).to_owned()
}

/// Removes all of a lock, or lets it expire in a moment if the user may not delete.
pub(crate) fn clean_up(namespace: &Namespace, key: &LockKey) -> [Cmd; 3] {
    let fence = namespace.fence(Slot::of(key));
    let queue = namespace.queue(key);
    // By a right that every user of locks has: other data, which end at once, take their place.
    let end_soon = |companion| {
        let mut end = command("SET", 4, companion);
        end.arg("").arg("PX").arg(1);
        end
    };
    let mut delete = command("DEL", 3, key.as_str());
    delete.arg(fence).arg(queue);
    [end_soon(fence), end_soon(queue), delete]
}

pub(crate) fn unmark(namespace: &Namespace, tried: &[Arc<Attempt>]) -> Cmd {
    let mut delete = Cmd::with_capacity(1 + tried.len(), 56 * tried.len());
    delete.arg("DEL");
    for attempt in tried {
        delete.arg(namespace.fence(attempt.slot));
    }
    delete
}

pub(crate) fn set_lock(attempt: &Attempt) -> Cmd {
    let mut set = command("SET", 7, attempt.key.as_str());
    set.arg(attempt.owner.as_ref())
        .arg("NX")
        .arg("GET")
        .arg("PX")
        .arg(millis(attempt.ttl.duration()));
    set
}

fn command(name: &str, arguments: usize, key: impl ToRedisArgs) -> Cmd {
    // Enough for most keys and for a token, two words and a number.
    let mut command = Cmd::with_capacity(arguments, 160);
    command.arg(name).arg(key);
    command
}

impl ToRedisArgs for Companion<'_> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        let mut argument = out.writer_for_next_arg();
        for part in self.parts() {
            // A buffer takes everything.
            argument.write_all(part.as_bytes()).unwrap_or_default();
        }
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locked {
    /// The attempt is its holder, since now or before.
    Own,
    Busy,
    /// A `once` call ended well, and keeps it.
    Done,
}

pub(crate) fn locked(reply: &Value, attempt: &Attempt) -> Result<Locked, RedisError> {
    match reply {
        Value::Nil => Ok(Locked::Own),
        Value::BulkString(owner) if has(owner, attempt) => Ok(Locked::Own),
        Value::BulkString(owner) => {
            attempt.mark_busy(owner, None);
            Ok(if is_done(owner) { Locked::Done } else { Locked::Busy })
        }
        other => Err(error_of(other)),
    }
}

/// Whether this attempt has the lock; data of other types are no lock of its.
pub(crate) fn is_own(reply: &Value, attempt: &Attempt) -> Result<bool, RedisError> {
    match reply {
        Value::BulkString(owner) => Ok(has(owner, attempt)),
        Value::Nil => Ok(false),
        Value::ServerError(error) if error.code() == "WRONGTYPE" => Ok(false),
        other => Err(error_of(other)),
    }
}

/// Whether that value is the attempt's, also if a waiter has marked it.
fn has(value: &[u8], attempt: &Attempt) -> bool {
    unmarked(value) == attempt.owner.as_ref().as_bytes()
}

pub(crate) fn leave_queue(namespace: &Namespace, attempt: &Attempt) -> Cmd {
    let mut leave = command("LREM", 4, namespace.queue(&attempt.key));
    leave.arg(0).arg(attempt.entry());
    leave
}

/// Makes a node run the next command although its slot is only moving there.
pub(crate) fn asking() -> Cmd {
    Cmd::with_capacity(1, 16).arg("ASKING").to_owned()
}

/// Counts the replicas that have this connection's writes, once there are enough or the limit is over.
pub(crate) fn wait(replicas: u8, limit: Duration) -> Cmd {
    let mut wait = Cmd::with_capacity(3, 32);
    // No time at all would be no limit.
    wait.arg("WAIT").arg(replicas).arg(millis(limit).max(1));
    wait
}

pub(crate) fn slots() -> Cmd {
    Cmd::with_capacity(2, 16).arg("CLUSTER").arg("SLOTS").to_owned()
}

/// A number, at least zero, or the error that the reply is instead.
pub(crate) fn integer(reply: &Value) -> Result<u64, RedisError> {
    match reply {
        Value::Int(number) => Ok(u64::try_from(*number).unwrap_or_default()),
        other => Err(error_of(other)),
    }
}

/// A list of that many numbers, or the error that the reply is instead. The client library would convert other values,
/// and truncate.
pub(crate) fn integers<const COUNT: usize>(reply: &Value) -> Result<[i64; COUNT], RedisError> {
    let Value::Array(list) = reply else { return Err(error_of(reply)) };
    let list: &[Value; COUNT] = list.as_slice().try_into().map_err(|_| unexpected())?;
    let mut numbers = [0; COUNT];
    for (number, part) in numbers.iter_mut().zip(list) {
        let Value::Int(part) = part else { return Err(unexpected()) };
        *number = *part;
    }
    Ok(numbers)
}

pub(crate) fn natural(number: i64) -> Result<u64, RedisError> {
    u64::try_from(number).map_err(|_| unexpected())
}

fn error_of(reply: &Value) -> RedisError {
    reply.clone().extract_error().err().unwrap_or_else(unexpected)
}

/// A reply that no server with locks gives. It is not quoted, because it may be the value of a lock.
pub(crate) fn unexpected() -> RedisError {
    (ErrorKind::UnexpectedReturnType, "unexpected reply").into()
}
