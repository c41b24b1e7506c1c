//! Connections that break before the first answer: often the server speaks something else than the URL says.

use std::error::Error;
use std::fmt;
use std::io;

use ::redis::{ErrorKind, RedisError};

use super::words;
use crate::types::error::Cause;

/// How far a connection was that broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing was answered to a login that is not encrypted.
    Plain,
    /// Nothing was answered to the handshake of TLS.
    Handshake,
    /// Nothing was answered to the first login behind that.
    Encrypted,
    /// The same, and the client has shown a certificate.
    Identified,
}

/// An error that may be the URL's.
#[derive(Debug)]
struct Unanswered {
    stage: Stage,
    error: RedisError,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for Unanswered {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

/// The same error, which has [`advice`] where a connection broke.
pub(crate) fn of_first_answer(stage: Stage, error: RedisError) -> RedisError {
    if !is_break(&error) {
        return error;
    }
    let kind = io_error(&error).map_or(io::ErrorKind::InvalidData, io::Error::kind);
    let error = words::shown(&error);
    io::Error::new(kind, Unanswered { stage, error }).into()
}

/// What to do about a connection that broke before the first answer.
pub(super) fn advice(error: &RedisError) -> Option<&'static str> {
    let cause = io_error(error)?.get_ref()?.downcast_ref::<Unanswered>()?;
    Some(match cause.stage {
        Stage::Plain => {
            "if the server speaks TLS, write `rediss://`, `rediss-sentinel://` or `rediss-cluster://`"
        }
        Stage::Handshake => NO_TLS,
        Stage::Encrypted => {
            "if the server requires client certificates, give one by `LockerBuilder::client_certificate`"
        }
        Stage::Identified => "see the server's log: it may refuse the client's certificate",
    })
}

/// What to do where TLS is not understood.
pub(super) const NO_TLS: &str = "if the server speaks no TLS there, write `redis://`, `redis-sentinel://` \
                                 or `redis-cluster://`";

/// The error of the system, or of a layer on the way to it, that is inside.
pub(super) fn io_error(error: &RedisError) -> Option<&io::Error> {
    error.source()?.downcast_ref::<Cause>()?.downcast_ref()
}

/// Whether the other side has hung up, or speaks another protocol.
fn is_break(error: &RedisError) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof};
    let broken = [BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof];
    error.kind() == ErrorKind::Parse
        || io_error(error).is_some_and(|error| broken.contains(&error.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advised(stage: Stage, error: impl Into<RedisError>) -> Option<&'static str> {
        advice(&of_first_answer(stage, error.into()))
    }

    #[test]
    fn a_connection_that_broke_has_advice() {
        let cases = [
            (Stage::Plain, "`rediss://`"),
            (Stage::Handshake, "`redis://`"),
            (Stage::Encrypted, "`LockerBuilder::client_certificate`"),
            (Stage::Identified, "log"),
        ];
        for (stage, words) in cases {
            for kind in [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe] {
                assert!(
                    advised(stage, io::Error::from(kind)).unwrap().contains(words),
                    "{stage:?}"
                );
            }
        }
        let garbage = ::redis::parse_redis_value(b"\x15\x03\x03\x00\x02\x02\x46").unwrap_err();
        assert!(advised(Stage::Plain, garbage).is_some());
    }

    #[test]
    fn an_error_that_is_none_of_the_urls_has_none() {
        for kind in [io::ErrorKind::ConnectionRefused, io::ErrorKind::NotFound] {
            assert_eq!(advised(Stage::Plain, io::Error::from(kind)), None);
        }
        assert_eq!(advised(Stage::Plain, (ErrorKind::AuthenticationFailed, "no")), None);
    }

    #[test]
    fn what_was_answered_is_not_quoted() {
        let garbage = ::redis::parse_redis_value(b"?canary\r\n").unwrap_err();
        let error = of_first_answer(Stage::Plain, garbage);
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
    }
}
