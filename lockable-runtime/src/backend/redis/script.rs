//! The scripts, each with the names and types of what goes in and comes out.

use ::redis::{Cmd, ErrorKind, FromRedisValue, RedisError, Value};

use crate::backend::{self, Attempt};

/// Frees a lock that `attempt` holds, and nobody else's.
pub(super) struct Release<'a> {
    pub(super) attempt: &'a Attempt,
}

impl Release<'_> {
    pub(super) const SOURCE: &'static str = include_str!("../../../scripts/release.lua");

    /// `EVALSHA` with the script's name, or `EVAL` with its text.
    pub(super) fn call(&self, verb: &str, script: &str) -> Cmd {
        let (key, owner) = (self.attempt.key.as_str(), self.attempt.owner.as_ref());
        let mut command = Cmd::with_capacity(5, script.len() + key.len() + owner.len() + 16);
        command.arg(verb).arg(script).arg(1).arg(key).arg(owner);
        command
    }

    pub(super) fn outcome(reply: Value) -> Result<backend::Release, RedisError> {
        match reply.extract_error().map(i64::from_redis_value)? {
            Ok(1) => Ok(backend::Release::Released),
            Ok(0) => Ok(backend::Release::Absent),
            Ok(-1) => Ok(backend::Release::Taken),
            Ok(_) => {
                Err((ErrorKind::UnexpectedReturnType, "unknown outcome of release.lua").into())
            }
            Err(error) => Err(error.into()),
        }
    }
}
