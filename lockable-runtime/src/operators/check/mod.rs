//! The result of a check: [`Locker::check`](crate::Locker::check) returns a [`Report`] of findings, each with advice.
//!
//! # Examples
//! Log the report at start-up, and do not start if locks cannot work:
//! ```
//! # async fn example() -> Result<(), lockable_runtime::LockError> {
//! # let locker = lockable_runtime::Locker::connect("memory://").await?;
//! use lockable_runtime::check::{Code, Severity};
//!
//! let report = locker.check().await;
//! println!("{report}");
//! assert!(report.is_ok());
//! assert_eq!(report.worst(), Some(Severity::Info));
//! assert!(report.findings().any(|finding| finding.code() == Code::OneProcess));
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! # As JSON
//! With the feature `serde` a report can be serialized, for pipelines and dashboards. The names stay as they are;
//! fields and codes may be added.
//!
//! | field | value |
//! |---|---|
//! | `ok` | whether calls can lock: [`Report::is_ok`] |
//! | `worst` | the severity of the worst finding: `info`, `warning` or `error`; `null` without findings |
//! | `backend` | where the locks are, without credentials |
//! | `prefix` | the start of the locker's keys |
//! | `namespace` | the start of the names of its queues and channels |
//! | `server` | [`Report::server`], or `null` |
//! | `address` | [`Report::address`], or `null` |
//! | `clock_difference_ms` | [`Report::clock_difference`] in whole milliseconds, or `null` |
//! | `findings` | the findings, the worst first, each with `severity`, `code`, `subject` and `address` (each may be `null`), `message` and `advice` |
//!
//! ```
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let locker = lockable_runtime::Locker::connect("memory://").await?;
//! let report = locker.check().await;
//! # #[cfg(feature = "serde")] {
//! let json = serde_json::to_value(&report)?;
//! assert_eq!(json["ok"], true);
//! assert_eq!(json["findings"][0]["code"], "one-process");
//! # }
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```

use std::cmp::Reverse;
use std::fmt;
use std::time::Duration;

use crate::core::types::remedy::Remedy;
use crate::findings::lines;
pub use crate::findings::{Code, Finding, Severity};

/// The findings of a check, the worst first.
///
/// [`Display`](fmt::Display) writes several lines for a log, with the verdict in the first. It shows no secret: the URL
/// is without its password.
#[derive(Clone, Debug)]
pub struct Report {
    pub(crate) backend: String,
    pub(crate) prefix: String,
    pub(crate) namespace: String,
    pub(crate) server: Option<String>,
    /// Where that server is, if the URL leaves it open.
    pub(crate) address: Option<String>,
    pub(crate) clock_difference: Option<Duration>,
    findings: Vec<Finding>,
}

/// The role of a user, which decides which rights a check requires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// A program that locks.
    #[default]
    App,
    /// An operator, who also lists locks, asks their holders to stop, and takes locks away, with an
    /// [`Admin`](crate::admin::Admin) or the program `lockable`.
    Operator,
    /// A reader, who lists locks and changes nothing.
    Reader,
}

impl Report {
    pub(crate) fn new(backend: &str) -> Self {
        Self {
            backend: backend.to_owned(),
            prefix: String::new(),
            namespace: String::new(),
            server: None,
            address: None,
            clock_difference: None,
            findings: Vec::new(),
        }
    }

    pub(crate) fn of(mut self, prefix: &str, namespace: &str) -> Self {
        (self.prefix, self.namespace) = (prefix.to_owned(), namespace.to_owned());
        self
    }

    pub(crate) fn add(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.findings.extend(findings);
        self.findings.sort_by_key(|finding| Reverse(finding.severity));
    }

    pub(crate) fn take_in(&mut self, other: Self, address: &str) {
        self.add(other.findings.into_iter().map(|finding| finding.at(address)));
    }

    /// The findings so far are about the server at the report's address, where it has one.
    pub(crate) fn locate(&mut self) {
        for finding in &mut self.findings {
            finding.address.clone_from(&self.address);
        }
    }

    /// Returns whether calls can lock: there is no error, but there may be warnings.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.worst() < Some(Severity::Error)
    }

    /// Returns the severity of the worst finding; `None` without findings.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.first().map(Finding::severity)
    }

    /// Returns the findings, the worst first.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter()
    }

    /// Replaces the advice, for a program whose users do not call [`LockerBuilder`](crate::LockerBuilder). Where
    /// `words` returns `None`, the advice stays.
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// use lockable_runtime::Remedy;
    ///
    /// let report = locker.check().await.advising(|remedy| match remedy {
    ///     Remedy::RootCertificate => Some("set `REDIS_CA_FILE`"),
    ///     _ => None,
    /// });
    /// # assert!(report.is_ok());
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    #[must_use]
    pub fn advising(mut self, words: impl Fn(Remedy) -> Option<&'static str>) -> Self {
        for Finding { advice, .. } in &mut self.findings {
            if let Some(other) = advice.remedy.and_then(&words) {
                advice.text = other.into();
            }
        }
        self
    }

    /// Returns the name and version that the server reports, such as `redis 8.0.2`; `None` when it was not checked.
    ///
    /// In a cluster these are those of its primaries.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// Returns the address of the primary that Sentinels name, as `host:port`.
    ///
    /// It is `None` if the URL itself leads to the server, if no Sentinel named a primary, and in a cluster.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    /// Returns by how much the server's clock differs from this machine's, to about half a round trip; `None`
    /// without a server.
    ///
    /// In a cluster it is the greatest difference of all primaries. Leases do not depend on it.
    #[must_use]
    pub fn clock_difference(&self) -> Option<Duration> {
        self.clock_difference
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.worst() {
            None | Some(Severity::Info) => "ok",
            Some(Severity::Warning) => "ok, with warnings",
            Some(Severity::Error) => "not ok",
        };
        let [errors, warnings, info] = [Severity::Error, Severity::Warning, Severity::Info]
            .map(|severity| self.findings.iter().filter(|one| one.severity == severity).count());
        let Self { backend, prefix, namespace, .. } = self;
        write!(f, "locks on {backend}, prefix `{prefix}`, namespace `{namespace}`: {verdict} ")?;
        write!(f, "(errors: {errors}, warnings: {warnings}, info: {info})")?;
        let clock = self.clock_difference.map(|by| format!("its clock differs by {by:.0?}"));
        let place = self.address.as_ref().map(|address| format!("the primary is {address}"));
        let facts: Vec<_> = place.into_iter().chain(self.server.clone()).chain(clock).collect();
        if !facts.is_empty() {
            write!(f, "\n  {}", facts.join("; "))?;
        }
        self.lines().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

impl Report {
    /// What was found, with all rights that are missing in one line where they are several.
    fn lines(&self) -> impl Iterator<Item = String> {
        let grants: Vec<_> = self.findings.iter().filter_map(|one| one.grant.as_deref()).collect();
        let are_several = grants.len() > 1;
        let findings = self.findings.iter().enumerate().filter_map(move |(number, finding)| {
            if !are_several || finding.grant.is_none() {
                return Some(finding.to_string());
            }
            let is_said = self.findings.iter().take(number).any(|it| it.is_like(finding));
            (!is_said).then(|| self.without_advice(finding))
        });
        let place = if self.findings.iter().any(|it| it.grant.is_some() && it.address.is_some()) {
            ", on each of these servers"
        } else {
            ""
        };
        let lines = if are_several { lines(grants.into_iter()) } else { Vec::new() };
        findings.chain(lines.into_iter().map(move |line| format!("do this{place}: `{line}`")))
    }

    /// A finding about rights, and all that are like it.
    fn without_advice(&self, finding: &Finding) -> String {
        let like = self.findings.iter().filter(|it| it.is_like(finding));
        let message = match &finding.grant {
            Some(grant) => grant.message(like.filter_map(|it| it.grant.as_deref())),
            None => finding.message.to_string(),
        };
        finding.with_place(&message)
    }
}

#[cfg(test)]
mod tests;
