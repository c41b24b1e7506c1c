//! Findings that are errors of the server or of the connection.

use ::redis::RedisError;

use crate::backend::Fault;
use crate::backend::redis::connect::opener::Target;
use crate::backend::redis::fault::{self, sentinel};
use crate::check::{Code, Finding, Severity};
use crate::types::error::LockErrorKind;
use crate::types::namespace::Channels;

/// A connection that could not be opened, or that broke.
pub(super) fn connection(error: &RedisError, target: &Target) -> Finding {
    if may_not_select(error) {
        let effect = "no connection reaches the database of the URL";
        return lacking(Severity::Error, "+select", target.user(), effect);
    }
    let (kind, cause, advice) = fault::explain_login(error, target.login_advice);
    match kind {
        LockErrorKind::Refused => {
            Finding::new(Severity::Error, Code::Refused, cause).advise(advice)
        }
        _ => unreachable(cause, target).advise(advice),
    }
}

/// A server that cannot be reached, with what to do where its address is from Sentinels or from its cluster.
pub(super) fn unreachable(message: String, target: &Target) -> Finding {
    if target.node.is_some() {
        return Finding::new(Severity::Error, Code::AddressesUnreachable, message);
    }
    let finding = Finding::new(Severity::Error, Code::Unreachable, message);
    if target.term.is_some() { finding.advise(sentinel::ADDRESSES) } else { finding }
}

/// The client reports only by its words that the user may not select the database of the URL.
fn may_not_select(error: &RedisError) -> bool {
    let words = error.detail().unwrap_or_default();
    words.contains("no permissions") && words.contains("'select'")
}

/// The user's callback gave no credentials.
pub(super) fn credentials(fault: &Fault) -> Finding {
    Finding::new(Severity::Error, Code::Credentials, fault.message.clone())
}

/// A server that could not be found.
pub(super) fn fault(fault: &Fault) -> Finding {
    let is_refused = fault.kind == LockErrorKind::Refused;
    let code = if is_refused { Code::Refused } else { Code::Unreachable };
    Finding::new(Severity::Error, code, fault.message.clone())
}

/// A server that gave no answer.
pub(super) fn silence(message: String) -> Finding {
    Finding::new(Severity::Error, Code::Unreachable, message)
}

pub(super) fn missing_right(severity: Severity, rule: &str, user: &str, effect: &str) -> Finding {
    let message = format!("the user `{user}` lacks the right `{rule}`: {effect}");
    let advice = format!("`ACL SETUSER {user} {rule}`");
    Finding::new(severity, Code::MissingRight, message).advise(advice).about(rule.to_owned())
}

/// The same of a server with locks, where all that is missing is granted in one line.
pub(super) fn lacking(severity: Severity, rule: &str, user: &str, effect: &str) -> Finding {
    missing_right(severity, rule, user, effect).granting(user, rule, effect)
}

/// An operation that the server answered with an error.
pub(super) fn operation(name: &'static str, error: &RedisError) -> Finding {
    let (_, cause, advice) = fault::explain(error);
    failed(name, &cause, advice)
}

pub(super) fn failed(name: &'static str, cause: &str, advice: &'static str) -> Finding {
    let message = format!("{name} failed: {cause}");
    Finding::new(Severity::Error, Code::OperationFailed, message).about(name).advise(advice)
}

/// What wake-ups need, and the server does not have, or not now.
pub(super) fn unnotified(channels: Channels, what: &str, cause: &str) -> Finding {
    let code = match channels {
        Channels::Plain => Code::GrantNotReceived,
        Channels::Sharded => Code::NoShardChannel,
    };
    let message = format!(
        "waiting calls get no notifications and poll about once a second: {what} failed: {cause}"
    );
    Finding::new(Severity::Warning, code, message)
}

/// The same of one server that has no such commands.
pub(super) fn no_wake_ups(what: &str, cause: &str) -> Finding {
    let finding = unnotified(Channels::Plain, what, cause);
    finding.advise("use a server that has `PUBLISH` and `PUBSUB NUMSUB`, also in scripts")
}
