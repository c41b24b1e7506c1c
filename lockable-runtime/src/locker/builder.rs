//! Making a locker.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Locker, Shared};
use crate::backend::{Fault, Link, Settings, open};
use crate::locker::acquire::Acquirer;
use crate::telemetry;
use crate::types::clock::within;
use crate::types::error::{LockError, LockErrorKind};
use crate::types::options::Ttl;
use crate::types::reporting::Reporting;

/// Settings of a [`Locker`].
///
/// # Examples
/// ```
/// # async fn example() -> Result<(), lockable_runtime::LockError> {
/// use std::time::Duration;
/// use lockable_runtime::Locker;
///
/// let locker = Locker::builder()
///     .url("memory://")
///     .prefix("shop:")
///     .expire(Duration::from_secs(30))
///     .connect()
///     .await?;
/// let guard = locker.lock("order:7").acquire().await?;
/// assert_eq!(guard.key().as_str(), "shop:order:7");
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until it connects"]
pub struct LockerBuilder {
    settings: Settings,
    prefix: String,
    expire: Option<Duration>,
    reporting: Reporting,
}

impl LockerBuilder {
    pub(super) fn new() -> Self {
        let prefix = DEFAULT_PREFIX.to_owned();
        Self {
            settings: Settings::default(),
            prefix,
            expire: None,
            reporting: Reporting::default(),
        }
    }

    /// Which backend; see [`Locker::connect`]. Required.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.settings.url = url.into();
        self
    }

    /// What every key starts with; `"disLock:"` by default, as in the annotation this crate mirrors.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The lease of locks that set none of their own; 10 s by default, at least 10 ms.
    pub fn expire(mut self, expire: Duration) -> Self {
        self.expire = Some(expire);
        self
    }

    /// How long one command may take until its answer; 1 s by default, far above any healthy one.
    ///
    /// A call may wait for two of these: one for the release of a lock of the same key that this
    /// process gave up, and one for its own request.
    pub fn command_deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadlines.command = deadline;
        self
    }

    /// How long opening a connection may take, logging in included; 2 s by default.
    pub fn connect_deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadlines.connect = deadline;
        self
    }

    /// Redacts keys in events, spans, errors and `{:?}`, as `redacted:` and a number, for keys with
    /// personal data; see [`telemetry`](crate::telemetry#redacted-keys).
    pub fn redact_keys(mut self) -> Self {
        self.reporting.redacts_keys = true;
        self
    }

    /// The share of its lease that a body without `renew` may use before a warning names its key;
    /// 0.8 by default, `None` turns it off. Told once, at the end of the body.
    pub fn warn_held_over(mut self, share: Option<f64>) -> Self {
        self.reporting.held_over = share;
        self
    }

    /// How long a call may wait before a warning names its key; off by default. Told once, while the
    /// call goes on waiting.
    pub fn warn_waited_over(mut self, patience: Option<Duration>) -> Self {
        self.reporting.waited_over = patience;
        self
    }

    /// The only root certificate to trust with `rediss://`, in PEM form; the system's by default.
    #[cfg(feature = "tls")]
    pub fn root_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.settings.root_certificate = Some(pem.into());
        self
    }

    /// Makes the locker and connects from the current runtime.
    ///
    /// # Errors
    /// As [`Locker::connect`], and [`is_invalid_option`](LockError::is_invalid_option) for an
    /// `expire` under 10 ms, and for a share of the lease that is not above 0 and at most 1.
    ///
    /// # Cancel safety
    /// Nothing is left behind but a connection that is being opened.
    pub async fn connect(self) -> Result<Locker, LockError> {
        let deadlines = self.settings.deadlines;
        let locker = self.connect_lazy()?;
        let backend = locker.0.acquirer.backend();
        // The backend keeps the deadline itself; this one covers a runtime that does not run.
        let limit = deadlines.connect.saturating_add(deadlines.command);
        match within(|| backend.timer(limit), backend.connect()).await {
            Some(outcome) => outcome?,
            None => return Err(Fault::no_answer(backend.name(), limit).into()),
        }
        Ok(locker)
    }

    /// Makes the locker without connecting; its first use connects.
    ///
    /// # Errors
    /// [`is_invalid_url`](LockError::is_invalid_url) and
    /// [`is_invalid_option`](LockError::is_invalid_option), as [`connect`](LockerBuilder::connect);
    /// [`is_unavailable`](LockError::is_unavailable) when the system gives no thread or no randomness.
    pub fn connect_lazy(mut self) -> Result<Locker, LockError> {
        self.reporting = checked(self.reporting)?;
        let ttl = self.expire.map_or(Ok(Ttl::DEFAULT), |expire| Ttl::new("expire", expire))?;
        let command_deadline = self.settings.deadlines.command;
        let link = Link::new(open(&self.settings)?, command_deadline, self.reporting);
        self.on(link, ttl)
    }

    /// The locker of a backend, whatever the URL names.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(crate) fn on(self, link: Link, ttl: Ttl) -> Result<Locker, LockError> {
        let acquirer = Acquirer::new(Arc::new(link))?;
        // Each time, because a recorder may have been installed since the last one.
        telemetry::describe();
        Ok(Locker(Arc::new(Shared { acquirer, prefix: self.prefix, ttl })))
    }
}

impl fmt::Debug for LockerBuilder {
    /// Without the URL, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockerBuilder")
            .field("prefix", &self.prefix)
            .field("expire", &self.expire)
            .finish_non_exhaustive()
    }
}

fn checked(reporting: Reporting) -> Result<Reporting, LockError> {
    match reporting.held_over {
        Some(share) if !(share > 0.0 && share <= 1.0) => {
            let flaw = format!("`warn_held_over` must be above 0 and at most 1, got {share}");
            Err(LockError::new(LockErrorKind::InvalidOption, flaw))
        }
        _ => Ok(reporting),
    }
}

/// What every lock key starts with unless another prefix is set.
pub(super) const DEFAULT_PREFIX: &str = "disLock:";
