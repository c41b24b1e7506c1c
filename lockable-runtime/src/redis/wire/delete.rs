//! The command that deletes a lock if it has a given owner token, if the server has one.
//!
//! See "When does one `DELEX` or `DELIFEQ` release a lock?" in DESIGN.md.

use ::redis::{Cmd, RedisError, Value};

use super::command::integer;
use super::server::field;
use crate::core::backend::Attempt;
use crate::redis::fault;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delete {
    /// `DELEX lock IFEQ token`, of Redis from 8.4 on.
    DelEx,
    /// `DELIFEQ lock token`, of Valkey from 9.0 on.
    DelIfEq,
}

impl Delete {
    /// The server's command by this handshake; `None` if its version is too old.
    pub(crate) fn of(hello: &Value) -> Option<Self> {
        let version = field(hello, "version")?;
        let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
        let version = (numbers.next()??, numbers.next()??);
        match field(hello, "server").as_deref() {
            Some("redis") if version >= (8, 4) => Some(Self::DelEx),
            Some("valkey") if version >= (9, 0) => Some(Self::DelIfEq),
            _ => None,
        }
    }

    /// How the check tries it.
    pub(crate) fn tried(self) -> &'static str {
        match self {
            Self::DelEx => "delex LOCK IFEQ probe",
            Self::DelIfEq => "delifeq LOCK probe",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::DelEx => "DELEX",
            Self::DelIfEq => "DELIFEQ",
        }
    }

    pub(crate) fn command(self, attempt: &Attempt) -> Cmd {
        let (key, owner) = (attempt.key.as_str(), attempt.owner.as_ref());
        let mut command = Cmd::with_capacity(4, key.len() + owner.len() + 16);
        command.arg(self.name()).arg(key);
        if let Self::DelEx = self {
            command.arg("IFEQ");
        }
        command.arg(owner);
        command
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Deleted {
    /// The lock was the attempt's, without a waiter, and is free.
    Free,
    /// The release script decides: a waiter has marked the lock, it is gone, another holder's, or other data.
    Undecided,
    /// The release script decides: the command is forbidden or missing.
    Refused,
}

impl Deleted {
    /// # Errors
    /// An error about the server, not the lock: it is loading, or the lock is elsewhere.
    pub(crate) fn of(reply: &Value) -> Result<Self, RedisError> {
        match integer(reply) {
            Ok(1) => Ok(Self::Free),
            Ok(_) => Ok(Self::Undecided),
            Err(error) if fault::is_missing_right(&error) || is_unknown(&error) => {
                Ok(Self::Refused)
            }
            Err(error) if matches!(error.code(), Some("ERR" | "WRONGTYPE")) => Ok(Self::Undecided),
            Err(error) => Err(error),
        }
    }
}

fn is_unknown(error: &RedisError) -> bool {
    error.detail().is_some_and(|words| words.starts_with("unknown command"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(line: &str) -> Value {
        ::redis::parse_redis_value(format!("{line}\r\n").as_bytes()).unwrap()
    }

    #[test]
    fn the_command_is_known_by_the_handshake() {
        let of = |fields: &str| {
            let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
            Delete::of(&Value::Array(fields.split_whitespace().map(text).collect()))
        };
        assert_eq!(of("server redis version 8.4.0"), Some(Delete::DelEx));
        assert_eq!(of("server redis version 10.0.1"), Some(Delete::DelEx));
        assert_eq!(of("server redis version 8.2.9"), None);
        assert_eq!(of("server valkey version 9.0.0-rc1"), Some(Delete::DelIfEq));
        assert_eq!(of("server valkey version 8.1.3"), None);
        // What Valkey says with `extended-redis-compatibility`.
        assert_eq!(of("server redis version 7.2.4"), None);
        assert_eq!(of("version 9.0.0"), None);
    }

    #[test]
    fn a_reply_decides_or_leaves_it_to_the_script() {
        let cases = [
            (":1", Deleted::Free),
            (":0", Deleted::Undecided),
            ("-WRONGTYPE no", Deleted::Undecided),
            ("-ERR Key should be of string type if conditions are specified", Deleted::Undecided),
            ("-ERR unknown command 'DELEX', with args", Deleted::Refused),
            ("-NOPERM no", Deleted::Refused),
        ];
        for (line, expected) in cases {
            assert_eq!(Deleted::of(&reply(line)).unwrap(), expected, "{line}");
        }
        for line in ["-MOVED 1 h:7", "-ASK 1 h:7", "-READONLY no", "-LOADING it", "+OK"] {
            assert!(Deleted::of(&reply(line)).is_err(), "{line}");
        }
    }
}
