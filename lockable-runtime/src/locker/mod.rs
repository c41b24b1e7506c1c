//! What users hold: a locker, and the request for one lock.

use std::env;
use std::fmt;
use std::sync::Arc;

pub use self::builder::LockerBuilder;
use crate::check::{Code, Finding, Report, Severity};
use crate::locker::acquire::Acquirer;
use crate::locker::inspect::{Holder, inspect};
use crate::locker::request::LockRequest;
use crate::types::error::{LockError, LockErrorKind};
use crate::types::key::LockKey;
use crate::types::options::Ttl;
use crate::types::reporting::Reporting;

pub(crate) mod acquire;
pub(crate) mod blocking;
mod builder;
pub(crate) mod global;
pub(crate) mod inspect;
pub(crate) mod request;
pub(crate) mod scope;

/// The variables that name a backend, the first one that is set counting.
const VARIABLES: [&str; 2] = ["LOCKABLE_URL", "REDIS_URL"];

/// Locks keys on one backend.
///
/// Cheap to clone, and usable from any number of tokio runtimes, side by side and one after the
/// other: it opens one connection for each, at its first use there, and another when one breaks.
///
/// # Guarantees
/// Of all holders that use the same backend, prefix and key, at most one has the lock at any time.
///
/// # What this does not guarantee
/// A lease on Redis is no proof of exclusion over a network: a failover may lose the lock, and a
/// paused process may act late. Hand the [fencing token](crate::LockGuard::fencing_token) to what you
/// protect, and let it refuse older ones.
///
/// # After a fork
/// A locker serves the process that made it. In a child of that process, which `fork` without `exec` makes,
/// every call fails at once, with [`is_not_configured`](LockError::is_not_configured): the child has none of
/// the threads that release and renew, and shares the connections. Nothing is sent, and the parent's locks
/// stay as they are. Make another locker in the child, use it on a runtime that the child made, and
/// [`install`](crate::install) it there; the child makes a default locker from the environment by itself. A
/// guard that was inherited does not hold its lock, and its drop does nothing. Best is to fork, or to become
/// a daemon, before the first locker is made.
///
/// # Examples
/// Lock, work, release:
/// ```
/// # async fn example() -> Result<(), lockable_runtime::LockError> {
/// use lockable_runtime::Locker;
///
/// let locker = Locker::connect("memory://").await?;
/// let stock = locker.lock("stock:7").run(async { 41 + 1 }).await?;
/// assert_eq!(stock, 42);
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone)]
pub struct Locker(Arc<Shared>);

struct Shared {
    acquirer: Arc<Acquirer>,
    prefix: String,
    ttl: Ttl,
}

impl Locker {
    /// Connects to the backend that the URL names, with the defaults of [`Locker::builder`].
    ///
    /// - `redis://user:password@host:6379/0`: a Redis (7.0 or later) or Valkey server; user,
    ///   password, port and database may be left out.
    /// - `rediss://…`: the same over TLS, with the feature `tls`.
    /// - `redis+unix:///path/to/socket?db=0`: the same over a unix socket (`unix://` works too).
    /// - `memory://`: an empty store in this process, shared by the clones of this locker, as
    ///   [`in_memory`](Locker::in_memory) gives; `memory://name` is shared by every locker of the
    ///   process that names it. Its timers are those of the caller's runtime, whose clock a test may
    ///   pause.
    ///
    /// # Errors
    /// - [`is_invalid_url`](LockError::is_invalid_url) when the URL names no backend.
    /// - [`is_unavailable`](LockError::is_unavailable) when the server does not answer within two
    ///   seconds, or refuses: a wrong password, a missing right, a version before 7.0. The message
    ///   says which and never shows the password.
    ///
    /// # Panics
    /// Not here; but with `memory://` whoever waits under a lock does on a tokio runtime that has no
    /// timers (`enable_time`).
    ///
    /// # Cancel safety
    /// Nothing is left behind but a connection that is being opened.
    pub async fn connect(url: &str) -> Result<Self, LockError> {
        Self::builder().url(url).connect().await
    }

    /// A locker on an empty store in this process, as `memory://` gives; shared by its clones alone.
    ///
    /// For tests, and for what runs in one process only. It needs no runtime, and nothing that could
    /// be unavailable. [`TestLocks`](crate::testing::TestLocks) has a store like this, and makes the
    /// rare cases.
    ///
    /// # Panics
    /// When the system gives no thread for the background, as [`std::thread::spawn`] does.
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// use lockable_runtime::Locker;
    ///
    /// let (one, other) = (Locker::in_memory(), Locker::in_memory());
    /// let _guard = one.lock("order:7").acquire().await?;
    /// assert!(one.lock("order:7").try_acquire().await?.is_none());
    /// assert!(other.lock("order:7").try_acquire().await?.is_some());
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    #[must_use]
    #[track_caller]
    #[expect(clippy::panic, reason = "there is nothing that a caller could do about it")]
    pub fn in_memory() -> Self {
        match Self::builder().url("memory://").connect_lazy() {
            Ok(locker) => locker,
            Err(error) => panic!("{error}"),
        }
    }

    /// Starts with the defaults and sets what differs.
    pub fn builder() -> LockerBuilder {
        LockerBuilder::new()
    }

    /// The locker that `LOCKABLE_URL` names, or else `REDIS_URL`; connects at its first use.
    ///
    /// # Errors
    /// - [`is_not_configured`](LockError::is_not_configured) when neither variable is set.
    /// - [`is_invalid_url`](LockError::is_invalid_url) when its value names no backend.
    pub fn from_env() -> Result<Self, LockError> {
        Self::from_environment().map(|(locker, _)| locker)
    }

    /// The locker that the environment names, and the variable that does.
    pub(crate) fn from_environment() -> Result<(Self, &'static str), LockError> {
        let set = |name| env::var(name).ok().filter(|url| !url.is_empty()).map(|url| (name, url));
        let Some((variable, url)) = VARIABLES.into_iter().find_map(set) else {
            let advice = "no locker: call `lockable_runtime::install` at start-up, or set \
                          LOCKABLE_URL or REDIS_URL";
            return Err(LockError::new(LockErrorKind::NotConfigured, advice));
        };
        match Self::builder().url(url).connect_lazy() {
            Ok(locker) => Ok((locker, variable)),
            Err(error) => Err(LockError::new(error.kind(), format!("{variable}: {error}"))),
        }
    }

    /// A request for the lock of this key; nothing happens until it is acquired.
    ///
    /// The locker's prefix is put before the key. Values that come from outside are better put
    /// into a key by the attribute's template, which escapes them. The lock carries the
    /// [`RequestId`](crate::RequestId) that is current where it is acquired, or else here.
    pub fn lock(&self, key: impl AsRef<str>) -> LockRequest {
        self.lock_with_prefix(&self.0.prefix, key.as_ref())
    }

    pub(crate) fn lock_with_prefix(&self, prefix: &str, key: &str) -> LockRequest {
        let key = LockKey::prefixed(prefix, key);
        LockRequest::new(Arc::clone(&self.0.acquirer), key, self.0.ttl)
    }

    /// Who has the lock of this key, and for how long; `None` when nobody has it.
    ///
    /// # What this does not guarantee
    /// The answer is as old as its way here. To decide by it whether to acquire would be a race;
    /// [`try_acquire`](LockRequest::try_acquire) is one step.
    ///
    /// # Errors
    /// - [`is_unavailable`](LockError::is_unavailable) when the backend gives no answer within its
    ///   deadline, or refuses.
    /// - [`is_wrong_type`](LockError::is_wrong_type) when the key holds data that is no lock.
    /// - [`is_invalid_key`](LockError::is_invalid_key), before anything is sent.
    /// - [`is_not_configured`](LockError::is_not_configured) [after a fork](Locker#after-a-fork).
    ///
    /// # Cancel safety
    /// Nothing is changed.
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// assert!(locker.inspect("order:7").await?.is_none());
    /// let guard = locker.lock("order:7").acquire().await?;
    /// match locker.inspect("order:7").await?.map(|holder| holder.remaining()) {
    ///     None => println!("free"),
    ///     Some(None) => println!("taken, without an end"),
    ///     Some(Some(rest)) => println!("taken, for {rest:?} more"),
    /// }
    /// # guard.release().await?;
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn inspect(&self, key: impl AsRef<str>) -> Result<Option<Holder>, LockError> {
        self.0.acquirer.own()?;
        let reporting = self.reporting();
        let key = LockKey::prefixed(&self.0.prefix, key.as_ref());
        let key = key.map_err(|error| reporting.redact(error))?;
        inspect(self.0.acquirer.link(), key).await
    }

    pub(crate) fn reporting(&self) -> &Reporting {
        self.0.acquirer.reporting()
    }

    /// Checks whether locks can work, and what endangers them: for a log at start-up, and for a
    /// pipeline that should stop before a deployment.
    ///
    /// On Redis, everything that is done with a lock is done once, with a lock of the check's own
    /// whose key begins with the locker's prefix, on connections of the check's own. The report names
    /// each right that the user lacks by the rule that would grant it; a version, a role and settings
    /// that locks should not have; a proxy that seems to be between; and subscriptions that slow waiting
    /// down. What the user may not read, because locks do not need it, is an info, or, for a proxy, left
    /// out. A server that gives no answer is a finding too. On `memory://` the report says what that
    /// means. All of it takes about ten round trips.
    ///
    /// # Guarantees
    /// No lock of anyone else is touched, and nothing is left behind.
    ///
    /// # What this does not guarantee
    /// A proxy is found by the address to which the server saw the connection come (`CLIENT INFO`), and by
    /// two connections that are one at the server, or lead to two (`INFO`). One that is transparent to both is not found. The report is as old as its way here. For a
    /// user who may use only some keys of the prefix, the right to all of them is reported as missing.
    /// What was refused shows in the server's `ACL LOG`.
    ///
    /// # The least rights
    /// All that a locker ever does is allowed by this line, with a name, a password and a prefix of
    /// yours:
    ///
    #[doc = include_str!("../../acl.md")]
    ///
    /// `+select` is for a URL that names another database than 0. Where no call waits for a lock,
    /// `+publish`, `+subscribe`, `+ping` and `&lockable:*` can be left out, and the report says so.
    ///
    /// # Cancel safety
    /// The check continues in the background, and cleans up.
    ///
    /// # Examples
    /// A service that does not start where its locks cannot work:
    /// ```
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lockable_runtime::Locker;
    ///
    /// let locker = Locker::builder().url("memory://").connect_lazy()?;
    /// let report = locker.check().await;
    /// println!("{report}");
    /// if !report.is_ok() {
    ///     return Err("locks cannot work".into());
    /// }
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    ///
    /// A finding in a test or in a pipeline:
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// use lockable_runtime::check::Severity;
    ///
    /// for finding in locker.check().await.findings() {
    ///     if finding.severity() >= Severity::Warning {
    ///         eprintln!("{}: {}", finding.code(), finding.advice());
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn check(&self) -> Report {
        if let Err(error) = self.0.acquirer.own() {
            return unchecked(self.backend_name(), &error);
        }
        let mut report = self.0.acquirer.backend().check(&self.0.prefix).await;
        if let Err(error) = LockKey::prefixed(&self.0.prefix, "key") {
            let (severity, code) = (Severity::Error, Code::InvalidPrefix);
            report.add([Finding::new(severity, code, error.to_string())]);
        }
        report
    }

    /// The same locker with another prefix.
    pub(crate) fn with_prefix(&self, prefix: String) -> Self {
        let acquirer = Arc::clone(&self.0.acquirer);
        Self(Arc::new(Shared { acquirer, prefix, ttl: self.0.ttl }))
    }

    pub(crate) fn acquirer(&self) -> &Acquirer {
        &self.0.acquirer
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.0.prefix
    }

    /// Where this locker's locks live, without credentials.
    pub(crate) fn backend_name(&self) -> &str {
        self.0.acquirer.backend().name()
    }
}

/// What a check finds that nobody can do.
fn unchecked(backend: &str, error: &LockError) -> Report {
    let mut report = Report::new(backend);
    let advice = "make another locker in this process";
    let (severity, code) = (Severity::Error, Code::Unreachable);
    report.add([Finding::new(severity, code, error.to_string()).advise(advice)]);
    report
}

impl fmt::Debug for Locker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locker")
            .field("backend", &self.backend_name())
            .field("prefix", &self.0.prefix)
            .field("expire", &self.0.ttl.duration())
            .finish()
    }
}
