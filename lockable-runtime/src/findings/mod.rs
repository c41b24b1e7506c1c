//! Findings of handshakes, probes and checks, each with a code, a severity and advice.

use std::borrow::Cow;
use std::fmt;

mod code;
mod grant;

pub use code::Code;
pub(crate) use grant::{AclGrant, lines};

use crate::core::types::remedy::{Advice, Remedy};

/// One finding: something that makes calls fail, endangers locks, or is worth knowing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub(crate) severity: Severity,
    pub(crate) code: Code,
    pub(crate) subject: Option<Cow<'static, str>>,
    pub(crate) address: Option<String>,
    pub(crate) message: Cow<'static, str>,
    pub(crate) advice: Advice,
    pub(crate) grant: Option<Box<AclGrant>>,
}

/// The severity of a finding; the worst is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// `info`: worth knowing; no action is needed.
    Info,
    /// `warning`: locks work, but may be lost or slow without need.
    Warning,
    /// `error`: some or all calls fail.
    Error,
}

impl Finding {
    pub(crate) fn new(
        severity: Severity,
        code: Code,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        let remedy = (code == Code::Refused).then_some(Remedy::UrlCredentials);
        let advice = Advice { remedy, ..code.advice().into() };
        let subject = None;
        let address = None;
        let grant = None;
        let message = message.into();
        Self { severity, code, subject, address, message, advice, grant }
    }

    pub(crate) fn granting(mut self, user: &str, rules: &str, effect: &str) -> Self {
        let user = user.to_owned();
        let rules = rules.to_owned();
        let effect = effect.to_owned();
        self.grant = Some(Box::new(AclGrant { user, rules, besides: String::new(), effect }));
        self
    }

    pub(crate) fn granting_besides(mut self, rules: &str) -> Self {
        if let Some(grant) = &mut self.grant {
            rules.clone_into(&mut grant.besides);
        }
        self
    }

    /// Whether both say the same of other rights.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let of =
            |it: &Self| it.grant.as_ref().map(|grant| (grant.user.clone(), grant.effect.clone()));
        let is_same = (self.severity, self.code) == (other.severity, other.code);
        is_same && self.address == other.address && of(self) == of(other)
    }

    pub(crate) fn with_place(&self, message: &str) -> String {
        let Self { severity, code, address, .. } = self;
        let place = address.as_ref().map(|address| format!(" at {address}")).unwrap_or_default();
        format!("{severity} [{code}]{place}: {message}")
    }

    /// With other advice, unless that is empty.
    pub(crate) fn advise(mut self, advice: impl Into<Advice>) -> Self {
        let advice = advice.into();
        self.advice = if advice.is_empty() { self.advice } else { advice };
        self
    }

    pub(crate) fn about(mut self, subject: impl Into<Cow<'static, str>>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    pub(crate) fn graded(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    pub(crate) fn at(mut self, address: &str) -> Self {
        self.address = Some(address.to_owned());
        self
    }

    /// Returns the severity.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// Returns the code, the kind of the finding.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// Returns the subject, such as an ACL rule (`+set`, `~disLock:*`), a setting or an operation.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        self.subject.as_deref()
    }

    /// Returns the address of the server with this finding, as `host:port`.
    ///
    /// It is `None` if the finding is about all servers, or the URL names only one.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    /// Returns the finding in one sentence.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the advice in one sentence.
    #[must_use]
    pub fn advice(&self) -> &str {
        &self.advice.text
    }
}

impl fmt::Display for Finding {
    /// In one line: `error [missing-right]: …; do this: …`, or `error [missing-right] at 10.0.0.7:26379: …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; do this: {}", self.with_place(&self.message), self.advice())
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}
