//! Findings that are errors of the server or of the connection.

use ::redis::RedisError;

use crate::backend::Fault;
use crate::backend::redis::fault;
use crate::check::{Code, Finding, Severity};
use crate::types::error::LockErrorKind;

/// A connection that could not be opened, or that broke.
pub(super) fn connection(error: &RedisError, user: &str) -> Finding {
    if may_not_select(error) {
        let effect = "no connection reaches the database of the URL";
        return missing_right(Severity::Error, "+select", user, effect);
    }
    let (kind, cause, advice) = fault::explain(error);
    let code = if kind == LockErrorKind::Refused { Code::Refused } else { Code::Unreachable };
    Finding::new(Severity::Error, code, cause).advise(advice)
}

/// The client reports only by its words that the user may not select the database of the URL.
fn may_not_select(error: &RedisError) -> bool {
    let words = error.detail().unwrap_or_default();
    words.contains("no permissions") && words.contains("'select'")
}

/// A server that could not be found, or for which there are no credentials.
pub(super) fn fault(fault: &Fault) -> Finding {
    let is_refused = fault.kind == LockErrorKind::Refused;
    let code = if is_refused { Code::Refused } else { Code::Unreachable };
    Finding::new(Severity::Error, code, fault.message.clone())
}

/// A server that gave no answer.
pub(super) fn silence(fault: &Fault) -> Finding {
    Finding::new(Severity::Error, Code::Unreachable, fault.message.clone())
}

pub(super) fn missing_right(severity: Severity, rule: &str, user: &str, effect: &str) -> Finding {
    let message = format!("the user `{user}` lacks the right `{rule}`: {effect}");
    let advice = format!("`ACL SETUSER {user} {rule}`");
    Finding::new(severity, Code::MissingRight, message).advise(advice).about(rule.to_owned())
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
