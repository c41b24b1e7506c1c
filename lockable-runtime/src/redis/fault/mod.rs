//! Errors of servers and connections, in words that say who is at fault and what to do.

use std::sync::Arc;

use ::redis::{ErrorKind, RedisError, ServerErrorKind};

pub(super) mod cluster;
#[cfg(not(feature = "tls-no-provider"))]
mod no_tls;
mod opening;
pub(crate) mod rights;
pub(super) mod sentinel;
#[cfg(feature = "tls-no-provider")]
mod tls;
mod words;

#[cfg(not(feature = "tls-no-provider"))]
use no_tls as tls;
pub(crate) use opening::{CERTIFICATE_REFUSED, NO_CERTIFICATE, NO_TLS, TLS, at_stage, of_closed};
#[cfg(feature = "tls-no-provider")]
pub(crate) use tls::NoRootCertificates;

use crate::core::backend::{Attempt, Fault};
use crate::core::naming::namespace::{Channels, Namespace};
use crate::core::types::error::{Cause, LockError, LockErrorKind};
use crate::core::types::key::LockKey;
use crate::core::types::remedy::{Advice, Remedy};
use crate::core::types::slot::Slot;

pub(crate) fn of(server: &str, error: &RedisError) -> Fault {
    About::Locks.fault(server, error)
}

/// The context of an error, which decides the advice.
#[derive(Clone, Copy)]
pub(crate) enum About {
    Locks,
    /// A command that locks need; the advice is for a refusal without one.
    Need {
        is_node: bool,
        otherwise: &'static str,
    },
    /// Reading locks.
    Looking(Channels),
    /// Logging in, with the builder's credentials (`true`) or the URL's.
    Login(bool),
    Confirming,
}

impl About {
    pub(crate) fn fault(self, server: &str, error: &RedisError) -> Fault {
        let (kind, cause, advice) = self.explain(error);
        let source = Some(Arc::new(words::shown(error)) as Cause);
        Fault { source, ..Fault::new(kind, format!("{server}: {cause}")) }.advise(advice)
    }

    /// [`explain`] with the advice for this.
    pub(crate) fn explain(self, error: &RedisError) -> (LockErrorKind, String, Advice) {
        let (kind, cause, usual) = explain(error);
        let (is_right, is_refused) = (is_missing_right(error), kind == LockErrorKind::Refused);
        let advice: &str = match self {
            Self::Need { is_node: true, .. } if is_right => &rights::ADVICE_OF_NODES,
            Self::Need { otherwise, .. } if is_refused && usual.is_empty() => otherwise,
            Self::Looking(Channels::Plain) if is_right => &rights::ADVICE_OF_READERS,
            Self::Looking(Channels::Sharded) if is_right => &rights::ADVICE_OF_READERS_OF_NODES,
            Self::Login(true) if is_login_refused(error) => return (kind, cause, GIVEN),
            Self::Confirming if is_right => WAIT_FORBIDDEN,
            Self::Confirming if is_refused => NO_WAIT,
            _ => return (kind, cause, usual),
        };
        (kind, cause, advice.into())
    }
}

/// The kind of an error, its words, and advice if there is any.
pub(crate) fn explain(error: &RedisError) -> (LockErrorKind, String, Advice) {
    if let Some(answered) = opening::closing(error) {
        let (kind, cause, advice) = explain(answered);
        // What is not known may pass.
        let kind = if advice.is_empty() { LockErrorKind::Unavailable } else { kind };
        return (kind, format!("{cause} and closed the connection"), advice);
    }
    let (kind, advice) = verdict(error);
    (kind, one_line(&words::shown(error)), advice)
}

/// A fault in counting up the fence counter; the lock may be held by then.
pub(crate) fn of_fence(mut fault: Fault, namespace: &Namespace, key: &LockKey) -> Fault {
    let fence = namespace.fence(Slot::of(key));
    if fault.kind == LockErrorKind::WrongType {
        fault.kind = LockErrorKind::Refused;
        fault.message = format!("the fence counter `{fence}` holds other data");
        *fault.advice = RENAME.into();
    } else {
        fault.message =
            format!("{}; while incrementing the fence counter `{fence}`", fault.message);
    }
    fault
}

/// A fault in enqueuing, which names the companion key if that is the reason.
pub(crate) fn of_queue(mut fault: Fault, namespace: &Namespace, attempt: &Attempt) -> Fault {
    if fault.message.contains("at the fence counter") {
        return of_fence(fault, namespace, &attempt.key);
    }
    if fault.message.contains("at the queue") {
        let queue = match &attempt.local_permit {
            None => namespace.queue(&attempt.key),
            Some(local_permit) => namespace.queue_of(&local_permit.permits_key),
        };
        fault.message = format!("the queue `{queue}` holds other data");
        *fault.advice = RENAME.into();
    }
    fault
}

/// The error of a missing secret, which is an error of this process.
pub(crate) fn missing_secret(error: &RedisError) -> Option<&LockError> {
    opening::io_error(error)?.get_ref()?.downcast_ref()
}

/// Adds the server and the advice to the fault of a secret that is missing before there is a connection.
pub(crate) fn of_secret(server: &str, fault: Fault) -> Fault {
    Fault { message: format!("{server}: {}", fault.message), ..fault }.advise(SECRET)
}

const SECRET: &str = "mend the file, or the function that returns it";

const RENAME: &str = "delete or rename it";

const GIVEN: Advice = Advice::new(
    Remedy::Credentials,
    "the server refuses the user and the password that `LockerBuilder::credentials` gave",
);

/// Whether a server, perhaps the wrong one, refused the user and the password.
pub(crate) fn is_login_refused(error: &RedisError) -> bool {
    error.kind() == ErrorKind::AuthenticationFailed
}

/// Whether a server has no databases: the client library says so only in words.
pub(crate) fn has_no_databases(error: &RedisError) -> bool {
    error.detail().is_some_and(|words| words.contains(NO_SELECT))
}

pub(crate) fn is_no_node(error: &RedisError) -> bool {
    const UNKNOWN: &str = "unknown command 'CLUSTER'";
    error.detail().is_some_and(|words| words.contains(DISABLED) || words.contains(UNKNOWN))
}

/// Inside a script the server reports a missing right only in words: 7.0 by the first of these, later versions by the
/// second.
pub(crate) fn is_missing_right(error: &RedisError) -> bool {
    const WORDS: [&str; 2] = ["The user executing the script can't", "ACL failure in script"];
    error.kind() == ServerErrorKind::NoPerm.into()
        || error.detail().is_some_and(|detail| WORDS.iter().any(|words| detail.contains(words)))
}

/// Whether the missing right is one to the command, not to a key or a channel.
pub(crate) fn forbids_command(error: &RedisError) -> bool {
    error.detail().is_some_and(|words| words.contains("to run the"))
}

/// Whether scripts cannot be called by name: the right or the command is missing.
pub(crate) fn forbids_names(error: &RedisError) -> bool {
    error.detail().is_some_and(|words| words.to_ascii_lowercase().contains("'evalsha'"))
}

/// Writes belong elsewhere now: a replica refuses them, or names another node.
pub(crate) fn leads_away(error: &RedisError) -> bool {
    use ServerErrorKind::{Ask, Moved, ReadOnly};
    [Ask, Moved, ReadOnly].into_iter().any(|kind| error.kind() == kind.into())
}

/// No server answers so to this request: the reply may be another's, and what the request has done is unknown.
pub(crate) fn is_no_answer(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Parse | ErrorKind::UnexpectedReturnType)
}

pub(crate) fn is_redirect(error: &RedisError) -> bool {
    use ServerErrorKind::{Ask, Moved, TryAgain};
    [Ask, Moved, TryAgain].into_iter().any(|kind| error.kind() == kind.into())
}

/// New locks are refused; held ones are renewed and released.
pub(crate) fn is_out_of_memory(error: &RedisError) -> bool {
    error.code() == Some("OOM")
}

pub(crate) fn passes(error: &RedisError) -> bool {
    verdict(error).0 == LockErrorKind::Unavailable && !is_out_of_memory(error)
}

/// The command's keys are in several slots, but this server or proxy accepts only one.
pub(crate) fn is_cross_slot(error: &RedisError) -> bool {
    error.kind() == ServerErrorKind::CrossSlot.into()
}

fn verdict(error: &RedisError) -> (LockErrorKind, Advice) {
    use LockErrorKind::{Refused, Unavailable, WrongType};
    if is_missing_right(error) {
        let is_of_nodes = error.detail().is_some_and(rights::are_of_nodes);
        let advice = if is_of_nodes { &rights::ADVICE_OF_NODES } else { &rights::ADVICE };
        return (Refused, advice.as_str().into());
    }
    if let Some(missing) = missing_secret(error) {
        return (missing.kind(), SECRET.into());
    }
    if let Some(verdict) = tls::verdict(error) {
        return verdict;
    }
    if let Some(advice) = opening::advice(error) {
        return (Unavailable, advice);
    }
    match (error.kind(), error.code()) {
        (_, Some("WRONGTYPE")) => (
            WrongType,
            "the key holds other data, which was not changed; choose another key or prefix".into(),
        ),
        (ErrorKind::AuthenticationFailed, _) | (_, Some("WRONGPASS" | "NOAUTH")) => {
            (Refused, CREDENTIALS)
        }
        (_, Some("DENIED")) => {
            (Refused, "give the server a password; see its `protected-mode`".into())
        }
        (ErrorKind::Server(ServerErrorKind::ResponseError), _) => of_database(error),
        (_, code) => (Unavailable, code.and_then(passing).unwrap_or_default().into()),
    }
}

fn passing(code: &str) -> Option<&'static str> {
    Some(match code {
        "OOM" => "the server is out of memory; see `maxmemory`",
        "MISCONF" => "the server cannot save and refuses writes; see its log",
        "NOREPLICAS" => "the server waits for its replicas; see `min-replicas-to-write`",
        "LOADING" => "the server loads its data, and has locks when that is done",
        "BUSY" => BUSY,
        "MASTERDOWN" => "this server is a replica, and its primary is unreachable",
        "CLUSTERDOWN" => {
            "too few nodes of the cluster agree, or none has the slot of the key; see \
             `redis-cli --cluster check` and `cluster-require-full-coverage`"
        }
        "TRYAGAIN" => "the cluster moves the slot of the key to another node",
        "READONLY" => "this server is a replica now; the next call connects again",
        "MOVED" | "ASK" => {
            "another node of the cluster has the slot of the key: this one is a replica, or one of \
             several, which a `redis-cluster://` URL leads to; the next call connects again"
        }
        _ => return None,
    })
}

/// The client library says only in words why it could not select the URL's database.
fn of_database(error: &RedisError) -> (LockErrorKind, Advice) {
    let words = error.detail().unwrap_or_default();
    if words.contains("Authentication required") {
        return (LockErrorKind::Refused, CREDENTIALS);
    }
    let found = OF_DATABASE.iter().find(|(part, ..)| words.contains(part));
    let (_, kind, advice) = found.unwrap_or(&("", LockErrorKind::Refused, ""));
    (*kind, (*advice).into())
}

const OF_DATABASE: [(&str, LockErrorKind, &str); 7] = [
    ("max number of clients", LockErrorKind::Unavailable, FULL),
    ("is busy running", LockErrorKind::Unavailable, BUSY),
    (NO_SELECT, LockErrorKind::Refused, NO_DATABASES),
    ("SELECT is not allowed in cluster mode", LockErrorKind::Refused, ONE_DATABASE),
    (DISABLED, LockErrorKind::Refused, NO_CLUSTER),
    ("unknown command 'CLUSTER'", LockErrorKind::Refused, NO_CLUSTER),
    (
        "DB index is out of range",
        LockErrorKind::Refused,
        "the server has no such database; put another number into the URL",
    ),
];

const FULL: &str =
    "the server is full: raise its `maxclients`, or close connections (`CLIENT LIST`)";
const NO_SELECT: &str = "unknown command 'SELECT'";
const DISABLED: &str = "cluster support disabled";
const BUSY: &str = "a script that runs for long blocks the server; `SCRIPT KILL` ends it";

const CREDENTIALS: Advice =
    Advice::new(Remedy::UrlCredentials, "put the right user and password into the URL");

const ONE_DATABASE: &str =
    "in a cluster locks use database 0 alone; write `redis-cluster://host:6379`, without a number";

const NO_CLUSTER: &str = "this is no node of a cluster; write `redis://host:6379/0` if it is a server, and \
                          `redis-sentinel://host:26379/NAME` if it is a Sentinel";

const NO_DATABASES: &str = "a server without databases has no locks; if it is a Sentinel, write \
                            `redis-sentinel://host:26379/NAME` with the name of the primary";

pub(crate) const NO_COMMAND: &str = "locks cannot work without this command; enable it, or use a \
                                     server that has it";

/// Advice if `EVAL`, or a command that scripts call, is unknown, renamed or disabled.
pub(crate) const NO_SCRIPTS: &str = "locks cannot be released safely without scripts; enable `EVAL` \
                                     and the commands that scripts call, or use a server that has \
                                     them";

fn one_line(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("the server answered `{code} {detail}`"),
        _ => error.to_string().replace('\n', " "),
    }
}

pub(crate) fn unexpected(server: &str, what: &str) -> Fault {
    Fault::unavailable(format!("{server}: unexpected reply to {what}"))
}

/// The peer has hung up, or the way to it is gone.
pub(crate) fn broke(server: &str) -> Fault {
    Fault::unavailable(format!("{server}: the connection broke"))
}

pub(crate) fn runtime_ended(server: &str) -> Fault {
    Fault::unavailable(format!(
        "{server}: the tokio runtime ended before the reply, or has no I/O (`enable_io`)"
    ))
}

/// The release's reply was lost, and its repetition found nothing.
pub(crate) fn unsure_release(server: &str) -> Fault {
    Fault::unavailable(format!(
        "{server}: the connection broke during the release; whether the lock was released or had already \
         expired is unknown"
    ))
}

pub(crate) fn unconfirmed(server: &str, count: u64, needed: u8) -> Fault {
    Fault::unavailable(format!("{server}: {count} of {needed} replicas have it"))
}

/// The lock was lost before replicas had confirmed it.
pub(crate) fn gone(server: &str) -> Fault {
    Fault::unavailable(format!("{server}: the lock was gone before replicas had it"))
}

const WAIT_FORBIDDEN: &str = "`replicas` needs one right more: grant `+wait` with `ACL SETUSER`";

pub(crate) const NO_WAIT: &str =
    "`replicas` needs this command; leave that setting out, or use a server that has it";

/// The message never shows the URL, which may hold a password.
pub(crate) fn bad_url(error: &RedisError) -> LockError {
    let message = error.to_string().split(" - ").next().unwrap_or_default().to_owned();
    LockError::new(LockErrorKind::InvalidUrl, message).advise(
        "a URL looks like `redis://user:password@host:6379/0`, \
         `redis-sentinel://user:password@host:26379,host:26379/NAME/0`, \
         `redis-cluster://user:password@host:6379,host:6379` or \
         `redis+unix:///path/to/socket?db=0`, with special characters percent-encoded",
    )
}

pub(crate) fn no_tls() -> LockError {
    let message = "`rediss://` needs the feature `tls` of lockable-runtime, or `tls-no-provider`";
    LockError::new(LockErrorKind::InvalidUrl, message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_errors_are_explained_and_no_refusals() {
        let codes = ["LOADING", "BUSY", "MASTERDOWN", "NOREPLICAS", "MISCONF", "CLUSTERDOWN"];
        for code in codes.into_iter().chain(["TRYAGAIN", "MOVED", "READONLY", "OOM"]) {
            let reply = ::redis::parse_redis_value(format!("-{code} words\r\n").as_bytes());
            let error = reply.unwrap().extract_error().unwrap_err();
            let (kind, cause, advice) = explain(&error);
            assert_eq!(kind, LockErrorKind::Unavailable, "{code}");
            assert!(cause.contains(code) && !advice.is_empty(), "{code}: {cause}");
            assert_eq!(passes(&error), code != "OOM", "{code}");
        }
    }
}
