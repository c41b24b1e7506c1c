//! What went wrong with a server, in words that say whose fault it is and what to do.

use std::sync::Arc;
use std::time::Duration;

use ::redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::backend::Fault;
use crate::error::{LockError, LockErrorKind};
use crate::key::LockKey;

/// An error of the connection, or one that the server answered.
pub(super) fn of(server: &str, error: &RedisError) -> Fault {
    let (kind, advice) = verdict(error);
    let cause = one_line(error);
    let message = match advice {
        "" => format!("{server}: {cause}"),
        advice => format!("{server}: {cause}; {advice}"),
    };
    Fault { kind, message, source: Some(Arc::new(error.clone())) }
}

/// The user lacks a right, found before any lock was asked for.
pub(super) fn missing_right(server: &str, error: &RedisError) -> Fault {
    let mut fault = of(server, error);
    fault.kind = LockErrorKind::Refused;
    fault.message.push_str(
        "; locks need `set`, `get`, `del`, `incr`, `time`, `eval` and `evalsha`, on the keys of \
         their prefix and on `lockable:*`",
    );
    fault
}

/// A fault in counting up the floor. Unlike other data at the lock's key, it proves nothing about
/// the lock, which may be held now.
pub(super) fn of_floor(mut fault: Fault, key: &LockKey) -> Fault {
    let floor = key.companion("floor");
    if fault.kind == LockErrorKind::WrongType {
        fault.kind = LockErrorKind::Refused;
        fault.message =
            format!("the fencing floor `{floor}` holds other data; delete or rename it");
    } else {
        fault.message = format!("{}; in counting up the fencing floor `{floor}`", fault.message);
    }
    fault
}

fn verdict(error: &RedisError) -> (LockErrorKind, &'static str) {
    use LockErrorKind::{Refused, Unavailable, WrongType};
    match (error.kind(), error.code()) {
        (_, Some("WRONGTYPE")) => (
            WrongType,
            "the key holds other data and was left as it is; choose another key or prefix",
        ),
        (ErrorKind::AuthenticationFailed, _) | (_, Some("WRONGPASS" | "NOAUTH")) => {
            (Refused, "put the right user and password into the URL")
        }
        (ErrorKind::Server(ServerErrorKind::NoPerm), _) => (Refused, "grant it with `ACL SETUSER`"),
        (_, Some("OOM")) => (Unavailable, "the server is out of memory; see `maxmemory`"),
        (_, Some("MISCONF")) => (Unavailable, "the server cannot save and refuses writes"),
        (ErrorKind::Server(ServerErrorKind::ReadOnly), _) => {
            (Unavailable, "this server is a replica now; the next call connects anew")
        }
        (ErrorKind::Server(ServerErrorKind::ResponseError) | ErrorKind::Extension, _) => {
            (Refused, "")
        }
        _ => (Unavailable, ""),
    }
}

/// The client library's own words; a server's are there already.
fn one_line(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("the server answered `{code} {detail}`"),
        _ => error.to_string().replace('\n', " "),
    }
}

pub(super) fn connect_timeout(server: &str, limit: Duration) -> Fault {
    let message = format!("{server}: could not connect within {limit:?}");
    Fault::new(LockErrorKind::Unavailable, message)
}

pub(super) fn unexpected(server: &str, what: &str) -> Fault {
    let message = format!("{server}: an answer to {what} that no Redis server gives");
    Fault::new(LockErrorKind::Unavailable, message)
}

pub(super) fn too_old(server: &str, version: &str) -> Fault {
    let message = format!("{server}: the server is version {version}; 7.0 or later is needed");
    Fault::new(LockErrorKind::Refused, message)
}

pub(super) fn runtime_ended(server: &str) -> Fault {
    let message = format!("{server}: the tokio runtime ended while it was connecting");
    Fault::new(LockErrorKind::Unavailable, message)
}

/// The message never shows the URL, which may hold a password.
pub(super) fn bad_url(error: &RedisError) -> LockError {
    let message = if error.to_string().contains("TLS") {
        "`rediss://` needs the feature `tls` of lockable-runtime".to_owned()
    } else {
        format!(
            "{}; a URL looks like `redis://user:password@host:6379/0` or \
             `redis+unix:///path/to/socket?db=0`, with special characters percent-encoded",
            error.to_string().split(" - ").next().unwrap_or_default()
        )
    };
    LockError::new(LockErrorKind::InvalidUrl, message)
}
