//! The words of a Sentinel's faults.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;

use ::redis::RedisError;

use super::{explain, is_missing_right, missing_secret, rights, tls, words};
use crate::core::backend::Fault;
use crate::core::types::error::{Cause, LockErrorKind};
use crate::core::types::remedy::{Advice, Remedy};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentinelReason {
    /// Another server is at its address.
    NoSentinel,
    MissingRight,
    /// It refuses the user, or one side refuses the other's certificate.
    Refused,
    /// It does not answer, or not now.
    Silent,
}

/// The reason, the error's words, and advice; the URL is that of a server at its address. Sentinels have their own
/// users and passwords.
pub(crate) fn explained(url: &str, error: &RedisError) -> (SentinelReason, String, Advice) {
    let (kind, cause, advice) = explain(error);
    let is_unknown = error.detail().is_some_and(|words| words.contains("unknown command"));
    match kind {
        LockErrorKind::Refused
            if missing_secret(error).is_some() || tls::verdict(error).is_some() =>
        {
            (SentinelReason::Refused, cause, advice)
        }
        LockErrorKind::Refused if is_unknown => {
            let advice = format!("write `{url}` if it is a Redis server");
            (SentinelReason::NoSentinel, format!("this is no Sentinel: {cause}"), advice.into())
        }
        LockErrorKind::Refused if is_missing_right(error) => {
            (SentinelReason::MissingRight, cause, rights::ADVICE_OF_SENTINELS.as_str().into())
        }
        LockErrorKind::Refused => (SentinelReason::Refused, cause, CREDENTIALS),
        _ => (SentinelReason::Silent, cause, advice),
    }
}

pub(crate) fn disagree(group: &str, named: impl Iterator<Item = impl Display>) -> Fault {
    let named: BTreeSet<_> = named.map(|endpoint| endpoint.to_string()).collect();
    let named = Vec::from_iter(named).join(" and ");
    let message =
        format!("{group}: the Sentinels name different primaries, {named}, each as often");
    let advice = "`SENTINEL REMOVE` and `SENTINEL MONITOR` mend those that are wrong";
    Fault::unavailable(message).advise(advice)
}

pub(crate) fn fault(sentinel: &str, url: &str, error: &RedisError) -> Fault {
    let (reason, cause, advice) = explained(url, error);
    let is_silent = reason == SentinelReason::Silent;
    let kind = if is_silent { LockErrorKind::Unavailable } else { LockErrorKind::Refused };
    let source = Some(Arc::new(words::shown(error)) as Cause);
    Fault { source, ..Fault::new(kind, format!("{sentinel}: {cause}")) }.advise(advice)
}

/// Advice if the primary that Sentinels name is unreachable.
pub(crate) const ADDRESSES: &str = "the Sentinels name this address; if it cannot be reached from here (containers, \
                                    NAT), set `replica-announce-ip` on each server and `sentinel \
                                    announce-ip` on each Sentinel, and give `sentinel monitor` an \
                                    address that can";

const CREDENTIALS: Advice = Advice::new(
    Remedy::SentinelCredentials,
    "give the Sentinels' credentials by `sentinel_user` and `sentinel_password` in the URL, or by \
     `LockerBuilder::sentinel_credentials`",
);
