//! What a check found: [`Locker::check`](crate::Locker::check) gives a [`Report`], whose findings
//! each say what is the matter and what to do.
//!
//! # Examples
//! Log it at start-up, and do not start where locks cannot work:
//! ```
//! # async fn example() -> Result<(), lockable_runtime::LockError> {
//! # let locker = lockable_runtime::Locker::connect("memory://").await?;
//! use lockable_runtime::check::{Code, Severity};
//!
//! let report = locker.check().await;
//! println!("{report}");
//! assert!(report.is_ok());
//! assert_eq!(report.worst(), Some(Severity::Note));
//! assert!(report.findings().any(|finding| finding.code() == Code::OneProcess));
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt;
use std::time::Duration;

/// What a check found, the worst first.
///
/// [`Display`](fmt::Display) writes several lines for a log, the verdict in the first. Nothing in it
/// is secret: the URL is shown without its password.
#[derive(Clone, Debug)]
pub struct Report {
    backend: String,
    server: Option<String>,
    round_trip: Option<Duration>,
    clock_difference: Option<Duration>,
    findings: Vec<Finding>,
}

/// One thing that is wrong, risky or worth knowing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    severity: Severity,
    code: Code,
    subject: Option<Cow<'static, str>>,
    matter: Cow<'static, str>,
    advice: Cow<'static, str>,
}

/// How bad a finding is; the worst is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Good to know; nothing has to be done.
    Note,
    /// Locks work, but may be lost or be slow where they need not.
    Risky,
    /// Calls fail, all or some of them.
    Wrong,
}

/// What kind of thing was found; the text of each is stable, for scripts and dashboards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// `unreachable`: there is no connection, or no answer in time.
    Unreachable,
    /// `refused`: the server does not let this user in.
    Refused,
    /// `missing-right`: the user may not do what locks need; the subject is the ACL rule.
    MissingRight,
    /// `scripts-not-kept`: the server does not keep the scripts; the subject is the ACL rule.
    ScriptsNotKept,
    /// `too-old`: the server is older than Redis 7.0.
    TooOld,
    /// `unknown-version`: nobody has tried this version, or the server does not tell it.
    UnknownVersion,
    /// `replica`: the server takes no writes.
    Replica,
    /// `sentinel`: the server watches others and has no locks.
    Sentinel,
    /// `cluster`: the server is a node of a cluster, which is wrong where that has several shards.
    Cluster,
    /// `one-by-one`: the server refuses a command with the keys of several locks, so each lease is renewed,
    /// and each lock released, by a command of its own.
    OneByOne,
    /// `verb-failed`: something that locks do failed on a lock of the check's own; the subject says
    /// what.
    VerbFailed,
    /// `grant-not-heard`: a grant that was published did not arrive.
    GrantNotHeard,
    /// `pattern-subscriber`: a subscription to a pattern takes in the channels of grants, so that a
    /// waiter that died in the queue costs the others a second.
    PatternSubscriber,
    /// `proxy`: something seems to be between, which may hide a failover; it is wrong where two
    /// connections led to two servers. Looked at as far as the user may `HELLO`, `CLIENT INFO` and
    /// `INFO`.
    Proxy,
    /// `invalid-prefix`: no key can begin with the locker's prefix.
    InvalidPrefix,
    /// `eviction`: the server may drop locks, or would if its memory had a limit.
    Eviction,
    /// `memory-limit`: a full server refuses new locks.
    MemoryLimit,
    /// `not-persistent`: a restart forgets the locks.
    NotPersistent,
    /// `snapshots-only`: a restart brings back the locks of some time ago.
    SnapshotsOnly,
    /// `written-later`: a crash loses the newest locks.
    WrittenLater,
    /// `unconfirmed-replication`: a failover loses locks without a limit.
    UnconfirmedReplication,
    /// `clock-differs`: the server's clock is not ours.
    ClockDiffers,
    /// `not-looked-at`: the check may not see something; the subject is the ACL rule that would let
    /// it.
    NotLookedAt,
    /// `one-process`: the locks are those of this process alone.
    OneProcess,
}

impl Report {
    pub(crate) fn new(backend: &str) -> Self {
        Self {
            backend: backend.to_owned(),
            server: None,
            round_trip: None,
            clock_difference: None,
            findings: Vec::new(),
        }
    }

    /// Puts findings behind those that are as bad.
    pub(crate) fn add(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.findings.extend(findings);
        self.findings.sort_by_key(|finding| Reverse(finding.severity));
    }

    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "memory has no server"))]
    pub(crate) fn set_server(&mut self, server: String) {
        self.server = Some(server);
    }

    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "memory has no server"))]
    pub(crate) fn set_pace(&mut self, round_trip: Duration, clock_difference: Option<Duration>) {
        self.round_trip = Some(round_trip);
        self.clock_difference = clock_difference;
    }

    /// Whether nothing is wrong: calls can lock. There may be risks.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.worst() < Some(Severity::Wrong)
    }

    /// How bad the worst finding is; `None` without any.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.first().map(Finding::severity)
    }

    /// The findings, the worst first.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter()
    }

    /// Where the locks live, without credentials.
    #[must_use]
    pub fn backend(&self) -> &str {
        &self.backend
    }

    /// What the server calls itself, such as `redis 8.0.2`; `None` when it was not asked.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// How long a command took until its answer, the median of five; `None` without a server.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    /// By how much the server's clock differs from this machine's, to about half a round trip.
    ///
    /// Leases do not depend on it.
    #[must_use]
    pub fn clock_difference(&self) -> Option<Duration> {
        self.clock_difference
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// What is known of the server, in one line; empty when nothing is.
    fn facts(&self) -> String {
        let server = self.server.clone();
        let round_trip = self.round_trip.map(|time| format!("a round trip takes {time:.0?}"));
        let clock = self.clock_difference.map(|by| format!("its clock differs by {by:.0?}"));
        [server, round_trip, clock].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.worst() {
            None => "ok",
            Some(Severity::Note) => "ok, with notes",
            Some(Severity::Risky) => "usable, with risks",
            Some(Severity::Wrong) => "something is wrong",
        };
        let [wrong, risky, notes] =
            [Severity::Wrong, Severity::Risky, Severity::Note].map(|severity| self.count(severity));
        write!(f, "locks on {}: {verdict} ", self.backend)?;
        write!(f, "(wrong: {wrong}, risky: {risky}, notes: {notes})")?;
        let facts = self.facts();
        if !facts.is_empty() {
            write!(f, "\n  {facts}")?;
        }
        self.findings.iter().try_for_each(|finding| write!(f, "\n  {finding}"))
    }
}

impl Finding {
    pub(crate) fn new(
        severity: Severity,
        code: Code,
        matter: impl Into<Cow<'static, str>>,
        advice: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { severity, code, subject: None, matter: matter.into(), advice: advice.into() }
    }

    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "nobody has rights in memory"))]
    pub(crate) fn about(mut self, subject: impl Into<Cow<'static, str>>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// How bad it is.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// What kind of thing it is.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// What exactly it is about, where the code alone does not tell: an ACL rule such as `+set`,
    /// `~disLock:*` or `&lockable:*`, a setting, or what was done.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        self.subject.as_deref()
    }

    /// What is the matter, in one sentence.
    #[must_use]
    pub fn matter(&self) -> &str {
        &self.matter
    }

    /// What to do, in one sentence.
    #[must_use]
    pub fn advice(&self) -> &str {
        &self.advice
    }
}

impl fmt::Display for Finding {
    /// In one line: `wrong [missing-right]: …; do this: …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity, code, matter, advice, .. } = self;
        write!(f, "{severity} [{code}]: {matter}; do this: {advice}")
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Risky => "risky",
            Self::Wrong => "wrong",
        })
    }
}

impl Code {
    /// The stable text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::MissingRight => "missing-right",
            Self::ScriptsNotKept => "scripts-not-kept",
            Self::TooOld => "too-old",
            Self::UnknownVersion => "unknown-version",
            Self::Replica => "replica",
            Self::Sentinel => "sentinel",
            Self::Cluster => "cluster",
            Self::OneByOne => "one-by-one",
            Self::VerbFailed => "verb-failed",
            Self::GrantNotHeard => "grant-not-heard",
            Self::PatternSubscriber => "pattern-subscriber",
            Self::Proxy => "proxy",
            Self::InvalidPrefix => "invalid-prefix",
            Self::Eviction => "eviction",
            Self::MemoryLimit => "memory-limit",
            Self::NotPersistent => "not-persistent",
            Self::SnapshotsOnly => "snapshots-only",
            Self::WrittenLater => "written-later",
            Self::UnconfirmedReplication => "unconfirmed-replication",
            Self::ClockDiffers => "clock-differs",
            Self::NotLookedAt => "not-looked-at",
            Self::OneProcess => "one-process",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(severity: Severity, code: Code) -> Finding {
        Finding::new(severity, code, format!("{code} it is"), "mend it")
    }

    #[test]
    fn bounds() {
        fn all<T: Send + Sync + Unpin + Clone>() {}
        all::<Report>();
        all::<Finding>();
    }

    #[test]
    fn the_worst_finding_comes_first_and_gives_the_verdict() {
        let mut report = Report::new("redis://host:6379/0");
        assert!(report.is_ok() && report.worst().is_none());
        report.add([finding(Severity::Risky, Code::Eviction)]);
        report.add([finding(Severity::Note, Code::ClockDiffers)]);
        assert!(report.is_ok());
        report.add([finding(Severity::Wrong, Code::Replica)]);
        report.add([finding(Severity::Risky, Code::NotPersistent)]);
        let codes: Vec<_> = report.findings().map(Finding::code).collect();
        let expected = [Code::Replica, Code::Eviction, Code::NotPersistent, Code::ClockDiffers];
        assert_eq!(codes, expected);
        assert!(!report.is_ok() && report.worst() == Some(Severity::Wrong));
    }

    #[test]
    fn a_report_reads_as_lines_of_a_log() {
        let mut report = Report::new("redis://host:6379/0");
        assert_eq!(
            report.to_string(),
            "locks on redis://host:6379/0: ok (wrong: 0, risky: 0, notes: 0)"
        );
        report.set_server("valkey 9.1.2".to_owned());
        report.set_pace(Duration::from_micros(85), Some(Duration::from_millis(12)));
        report.add([finding(Severity::Note, Code::MemoryLimit)]);
        report.add([finding(Severity::Risky, Code::Eviction)]);
        assert_eq!(
            report.to_string(),
            "locks on redis://host:6379/0: usable, with risks (wrong: 0, risky: 1, notes: 1)\n  \
             valkey 9.1.2; a round trip takes 85µs; its clock differs by 12ms\n  \
             risky [eviction]: eviction it is; do this: mend it\n  \
             note [memory-limit]: memory-limit it is; do this: mend it"
        );
    }
}
