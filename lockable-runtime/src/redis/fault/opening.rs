//! Connections that break while they are opened: often the protocol of the URL is wrong, or the server says why it
//! closes them.

use std::error::Error;
use std::fmt;
use std::io;

use ::redis::{ErrorKind, RedisError, parse_redis_value};

use super::words;
use crate::core::types::error::Cause;
use crate::core::types::remedy::{Advice, Remedy};

#[derive(Debug)]
struct Unanswered {
    words: String,
    advice: Advice,
    error: RedisError,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.words, self.error)
    }
}

impl Error for Unanswered {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

/// Adds the stage and its [`advice`] to the error of a broken connection; returns any other error unchanged.
pub(crate) fn at_stage((words, advice): (String, Advice), error: RedisError) -> RedisError {
    if !is_break(&error) {
        return error;
    }
    let kind = io_error(&error).map_or(io::ErrorKind::InvalidData, io::Error::kind);
    let error = words::shown(&error);
    io::Error::new(kind, Unanswered { words, advice, error }).into()
}

pub(super) fn advice(error: &RedisError) -> Option<Advice> {
    Some(inside::<Unanswered>(error)?.advice.clone())
}

/// The error of a server whose only reply was this before it closed the connection; `None` if it is no error.
pub(crate) fn of_closed(reply: &[u8]) -> Option<io::Error> {
    let is_one = reply.iter().position(|byte| *byte == b'\n') == reply.len().checked_sub(1);
    let answered = parse_redis_value(reply).ok().filter(|_| is_one)?.extract_error().err()?;
    Some(io::Error::new(io::ErrorKind::ConnectionRefused, words::shown(&answered)))
}

/// The server's only reply before it closed the connection.
pub(super) fn closing(error: &RedisError) -> Option<&RedisError> {
    inside(error)
}

pub(crate) const TLS: &str =
    "if the server speaks TLS, write `rediss://`, `rediss-sentinel://` or `rediss-cluster://`";

pub(crate) const NO_TLS: &str = "if the server speaks no TLS there, write `redis://`, `redis-sentinel://` \
                                 or `redis-cluster://`";

pub(crate) const NO_CERTIFICATE: Advice = Advice::new(
    Remedy::ClientCertificate,
    "if the server requires client certificates, give one by `LockerBuilder::client_certificate`",
);

pub(crate) const CERTIFICATE_REFUSED: &str =
    "see the server's log: it may refuse the client's certificate";

fn inside<T: Error + 'static>(error: &RedisError) -> Option<&T> {
    io_error(error)?.get_ref()?.downcast_ref()
}

/// The error of the system inside, or of a layer on the way to it.
pub(super) fn io_error(error: &RedisError) -> Option<&io::Error> {
    error.source()?.downcast_ref::<Cause>()?.downcast_ref()
}

/// Whether the peer has hung up, or speaks another protocol.
fn is_break(error: &RedisError) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof};
    let broken = [BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof];
    error.kind() == ErrorKind::Parse
        || io_error(error).is_some_and(|error| broken.contains(&error.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_login(error: impl Into<RedisError>) -> RedisError {
        at_stage(("no answer".to_owned(), TLS.into()), error.into())
    }

    #[test]
    fn a_connection_that_broke_has_its_stage_and_advice() {
        for kind in [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe] {
            let error = at_login(io::Error::from(kind));
            assert_eq!(advice(&error), Some(TLS.into()));
            assert!(error.to_string().contains("no answer: "), "{error}");
        }
        let garbage = ::redis::parse_redis_value(b"\x15\x03\x03\x00\x02\x02\x46").unwrap_err();
        assert_eq!(advice(&at_login(garbage)), Some(TLS.into()));
    }

    #[test]
    fn an_error_that_is_none_of_the_urls_has_none() {
        for kind in [io::ErrorKind::ConnectionRefused, io::ErrorKind::NotFound] {
            assert_eq!(advice(&at_login(io::Error::from(kind))), None);
        }
        assert_eq!(advice(&at_login((ErrorKind::AuthenticationFailed, "no"))), None);
    }

    #[test]
    fn what_was_answered_is_not_quoted() {
        let garbage = ::redis::parse_redis_value(b"?canary\r\n").unwrap_err();
        let error = at_login(garbage);
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        let closed = of_closed(b"-ERR cannot take 'canary'\r\n").unwrap();
        assert!(!format!("{closed} {closed:?}").contains("canary"), "{closed:?}");
    }
}
