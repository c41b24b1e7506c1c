//! What keeps locks from working at a server, or on the way to it.

use std::sync::atomic::Ordering;

use ::redis::RedisError;

use crate::core::backend::Fault;
use crate::core::types::error::LockErrorKind;
use crate::core::types::remedy::Advice;
use crate::findings::{Code, Finding, Severity};
use crate::redis::connect::opener::{CONNECTING, Opener, Target};
use crate::redis::fault::{self, About, sentinel};

/// One judgement in two forms: a check reports the finding, a locker fails with the fault.
pub(crate) struct Flaw {
    pub(crate) finding: Finding,
    pub(crate) fault: Fault,
    /// The server's error, if that is the flaw.
    pub(crate) error: Option<RedisError>,
}

impl Flaw {
    /// A server, or a URL, that has to be changed.
    pub(crate) fn unfit(finding: Finding, target: &Target) -> Self {
        let message = format!("{}: {}", target.server, finding.message());
        let fault = Fault::new(LockErrorKind::Refused, message).advise(finding.advice.clone());
        Self { finding, fault, error: None }
    }

    /// A server that has no locks. The URL may be right if the server was usable before, or if Sentinels or nodes name
    /// it.
    pub(crate) fn misdirected(elsewhere: Finding, opener: &Opener, target: &Target) -> Self {
        let is_named = target.term.is_some() || target.node.is_some();
        let is_passing = opener.was_connected.load(Ordering::Relaxed) || is_named;
        let is_replica = elsewhere.code() == Code::Replica;
        let mut flaw = Self::unfit(elsewhere, target);
        if is_replica && is_passing {
            flaw.fault.kind = LockErrorKind::Unavailable;
        }
        if is_replica && target.node.is_some() {
            let message = "this node is a replica by now: a failover is under way, or is just over";
            let demoted = Finding::new(Severity::Error, Code::Replica, message);
            flaw.finding = demoted.advise("check again");
        }
        flaw
    }

    /// The connection could not be opened, or broke, or the login was refused.
    pub(crate) fn connection(error: &RedisError, target: &Target) -> Self {
        let fault = About::Login(target.is_given).fault(&target.server, error);
        let finding = if may_not_select(error) {
            let effect = "no connection reaches the database of the URL";
            lacking(Severity::Error, "+select", target.user(), effect)
        } else {
            let (kind, cause, advice) = About::Login(target.is_given).explain(error);
            let finding = match kind {
                _ if fault::missing_secret(error).is_some() => {
                    Finding::new(Severity::Error, Code::Credentials, cause)
                }
                LockErrorKind::Refused => Finding::new(Severity::Error, Code::Refused, cause),
                _ => unreachable(cause, target),
            };
            finding.advise(advice)
        };
        Self { finding, fault, error: None }
    }

    pub(crate) fn late(opener: &Opener, target: &Target) -> Self {
        let progress = &target.client.progress;
        let (message, advice) = progress.late(CONNECTING, opener.connect_deadline);
        // Sentinels that name it speak what the URL says.
        let advice = if target.term.is_some() { Advice::default() } else { advice };
        let finding = unreachable(message, target).advise(advice);
        Self { finding, fault: opener.late(progress), error: None }
    }

    /// An operation that the server answered with an error; `otherwise` is the advice if a refusal has none.
    pub(crate) fn answered(
        name: &'static str,
        error: RedisError,
        otherwise: &'static str,
        target: &Target,
    ) -> Self {
        let is_node = target.node.is_some();
        let fault = About::Need { is_node, otherwise }.fault(&target.server, &error);
        let (_, cause, advice) = fault::explain(&error);
        Self { finding: failed(name, &cause, advice), fault, error: Some(error) }
    }

    pub(crate) fn unexpected(name: &'static str, target: &Target) -> Self {
        let finding = failed(name, &fault::unexpected("it", name).message, "");
        Self { finding, fault: fault::unexpected(&target.server, name), error: None }
    }
}

impl From<Flaw> for Fault {
    fn from(flaw: Flaw) -> Self {
        flaw.fault
    }
}

impl From<Flaw> for Finding {
    fn from(flaw: Flaw) -> Self {
        flaw.finding
    }
}

/// An unreachable server, with advice if its address is from Sentinels or its cluster.
pub(crate) fn unreachable(message: String, target: &Target) -> Finding {
    if target.node.is_some() {
        return Finding::new(Severity::Error, Code::AddressesUnreachable, message);
    }
    let finding = Finding::new(Severity::Error, Code::Unreachable, message);
    if target.term.is_some() { finding.advise(sentinel::ADDRESSES) } else { finding }
}

fn may_not_select(error: &RedisError) -> bool {
    let words = error.detail().unwrap_or_default();
    words.contains("no permissions") && words.contains("'select'")
}

pub(crate) fn missing_right(severity: Severity, rule: &str, user: &str, effect: &str) -> Finding {
    let message = format!("the user `{user}` lacks the right `{rule}`: {effect}");
    let advice = format!("`ACL SETUSER {user} {rule}`");
    Finding::new(severity, Code::MissingRight, message).advise(advice).about(rule.to_owned())
}

/// As [`missing_right`], of a server with locks, whose missing rights are granted in one line.
pub(crate) fn lacking(severity: Severity, rule: &str, user: &str, effect: &str) -> Finding {
    missing_right(severity, rule, user, effect).granting(user, rule, effect)
}

pub(crate) fn failed(name: &'static str, cause: &str, advice: impl Into<Advice>) -> Finding {
    let message = format!("{name} failed: {cause}");
    Finding::new(Severity::Error, Code::OperationFailed, message).about(name).advise(advice)
}

#[cfg(test)]
mod tests {
    use ::redis::Value;

    use super::*;
    use crate::core::background::background;
    use crate::core::settings::Settings;
    use crate::redis::wire::server;

    /// In a failover behind one name, calls are worth repeating.
    #[test]
    fn a_replica_that_was_the_primary_is_no_wrong_url() {
        let url = "redis://host:7";
        let settings = Settings { url: url.to_owned(), ..Settings::default() };
        let (opener, _) = Opener::new(&settings, background().unwrap()).unwrap();
        let target = Target::at(url);
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let hello = Value::Array(["mode", "standalone", "role", "replica"].map(text).to_vec());
        let kind = || {
            let replica = server::elsewhere(&hello, &Value::Nil, &target);
            Flaw::misdirected(replica, &opener, &target).fault.kind
        };
        assert_eq!(kind(), LockErrorKind::Refused);
        opener.was_connected.store(true, Ordering::Relaxed);
        assert_eq!(kind(), LockErrorKind::Unavailable);
    }
}
