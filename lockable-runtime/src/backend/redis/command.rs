//! The plain commands of an acquisition, and what their replies say.

use std::io::Write;
use std::time::Duration;

use ::redis::{Cmd, FromRedisValue, Pipeline, RedisError, RedisWrite, ToRedisArgs, Value};

use crate::backend::Attempt;
use crate::key::Companion;

/// The commands of one acquisition: lock and fencing token in one round trip.
pub(super) struct Acquire<'a> {
    pub(super) attempt: &'a Attempt,
    /// What a floor that is not there starts from.
    pub(super) seed: u64,
    pub(super) makes_floor: bool,
    pub(super) asks_time: bool,
}

/// The answers to one acquisition.
pub(super) struct Replies<'a> {
    pub(super) locked: &'a Value,
    pub(super) floor: Option<&'a Value>,
    pub(super) counted: &'a Value,
    pub(super) time: Option<&'a Value>,
}

impl Acquire<'_> {
    /// `SET lock NX GET` and `INCR floor`, with `SET floor NX` between them where the floor may not be
    /// there, and `TIME` where it is asked for.
    pub(super) fn commands(&self) -> Pipeline {
        let floor = self.attempt.key.floor();
        let mut pipeline = Pipeline::with_capacity(4);
        pipeline.add_command(set_lock(self.attempt));
        if self.makes_floor {
            pipeline.add_command(set_floor(floor, self.attempt, self.seed));
        }
        pipeline.add_command(command("INCR", 2, floor));
        if self.asks_time {
            pipeline.add_command(time());
        }
        pipeline
    }

    pub(super) fn replies<'a>(&self, replies: &'a [Value]) -> Option<Replies<'a>> {
        let mut replies = replies.iter();
        let locked = replies.next()?;
        let floor = if self.makes_floor { Some(replies.next()?) } else { None };
        Some(Replies { locked, floor, counted: replies.next()?, time: replies.next() })
    }
}

pub(super) fn time() -> Cmd {
    let mut time = Cmd::with_capacity(1, 4);
    time.arg("TIME");
    time
}

pub(super) fn set_lock(attempt: &Attempt) -> Cmd {
    let mut set = command("SET", 7, attempt.key.as_str());
    set.arg(attempt.owner.as_ref())
        .arg("NX")
        .arg("GET")
        .arg("PX")
        .arg(millis(attempt.ttl.duration()));
    set
}

fn set_floor(floor: Companion<'_>, attempt: &Attempt, seed: u64) -> Cmd {
    let mut set = command("SET", 6, floor);
    set.arg(seed).arg("NX").arg("PX").arg(millis(attempt.ttl.floor_life()));
    set
}

fn command(name: &str, arguments: usize, key: impl ToRedisArgs) -> Cmd {
    // Room for most keys and for a token, two words and a number.
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

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Whether `SET lock NX GET` made, or found, this attempt the holder.
pub(super) fn is_granted(reply: &Value, attempt: &Attempt) -> Result<bool, RedisError> {
    match reply {
        Value::Nil => Ok(true),
        Value::BulkString(owner) => Ok(owner == attempt.owner.as_ref().as_bytes()),
        other => Err(error_of(other)),
    }
}

/// A reply that is a number, or the error that it is instead.
pub(super) fn integer(reply: &Value) -> Result<u64, RedisError> {
    match reply {
        Value::Int(number) => Ok(number.unsigned_abs()),
        other => Err(error_of(other)),
    }
}

fn error_of(reply: &Value) -> RedisError {
    match reply.clone().extract_error() {
        Err(error) => error,
        Ok(other) => match <()>::from_redis_value(other) {
            Err(error) => error.into(),
            Ok(()) => {
                RedisError::from((::redis::ErrorKind::UnexpectedReturnType, "unexpected reply"))
            }
        },
    }
}
