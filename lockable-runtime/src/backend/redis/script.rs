//! The scripts, each with the names and types of what goes in and comes out.

use ::redis::{Cmd, ErrorKind, FromRedisValue, RedisError, Value};

use crate::backend::{self, Attempt};

/// A Lua script with its keys and arguments.
pub(super) trait Script {
    const SOURCE: &'static str;

    /// Adds the number of keys, the keys and the arguments.
    fn complete(&self, command: &mut Cmd);
}

/// Frees a lock that `attempt` holds, and nobody else's.
pub(super) struct Release<'a> {
    pub(super) attempt: &'a Attempt,
}

impl Script for Release<'_> {
    const SOURCE: &'static str = include_str!("../../../scripts/release.lua");

    fn complete(&self, command: &mut Cmd) {
        command.arg(1).arg(self.attempt.key.as_str()).arg(self.attempt.owner.as_str());
    }
}

impl Release<'_> {
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
