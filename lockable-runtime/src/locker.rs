//! What users hold: a locker, and the request for one lock.

use std::env;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::acquire::try_acquire;
use crate::backend::{Backend, Fault, Settings, open};
use crate::clock::within;
use crate::error::{LockError, LockErrorKind};
use crate::guard::LockGuard;
use crate::hold::Run;
use crate::key::LockKey;
use crate::options::Ttl;
use crate::releaser::Releaser;

/// What every lock key starts with unless another prefix is set.
pub(crate) const DEFAULT_PREFIX: &str = "disLock:";

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
/// paused process may act late. Hand the [fencing token](LockGuard::fencing_token) to what you
/// protect, and let it refuse older ones.
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
    releaser: Arc<Releaser>,
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
    /// - `memory://`: an empty store in this process, shared by the clones of this locker;
    ///   `memory://name` is shared by every locker of the process that names it.
    ///
    /// # Errors
    /// - [`is_invalid_url`](LockError::is_invalid_url) when the URL names no backend.
    /// - [`is_unavailable`](LockError::is_unavailable) when the server does not answer within two
    ///   seconds, or refuses: a wrong password, a missing right, a version before 7.0. The message
    ///   says which and never shows the password.
    ///
    /// # Cancel safety
    /// Nothing is left behind but a connection that is being opened.
    pub async fn connect(url: &str) -> Result<Self, LockError> {
        Self::builder().url(url).connect().await
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
    /// into a key by the attribute's template, which escapes them.
    pub fn lock(&self, key: impl AsRef<str>) -> LockRequest {
        self.lock_with_prefix(&self.0.prefix, key.as_ref())
    }

    pub(crate) fn lock_with_prefix(&self, prefix: &str, key: &str) -> LockRequest {
        let key = LockKey::prefixed(prefix, key);
        LockRequest { releaser: Arc::clone(&self.0.releaser), key, ttl: Ok(self.0.ttl) }
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.0.prefix
    }

    /// Where this locker's locks live, without credentials.
    pub(crate) fn backend_name(&self) -> &str {
        self.0.releaser.backend().name()
    }
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
}

impl LockerBuilder {
    fn new() -> Self {
        Self { settings: Settings::default(), prefix: DEFAULT_PREFIX.to_owned(), expire: None }
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
    pub fn command_deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadlines.command = deadline;
        self
    }

    /// How long opening a connection may take, logging in included; 2 s by default.
    pub fn connect_deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadlines.connect = deadline;
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
    /// `expire` under 10 ms.
    ///
    /// # Cancel safety
    /// Nothing is left behind but a connection that is being opened.
    pub async fn connect(self) -> Result<Locker, LockError> {
        let deadlines = self.settings.deadlines;
        let locker = self.connect_lazy()?;
        let backend = locker.0.releaser.backend();
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
    /// [`is_invalid_option`](LockError::is_invalid_option), as [`connect`](LockerBuilder::connect).
    pub fn connect_lazy(self) -> Result<Locker, LockError> {
        let ttl = self.expire.map_or(Ok(Ttl::DEFAULT), Ttl::new)?;
        let releaser = Releaser::new(open(&self.settings)?, self.settings.deadlines.command);
        Ok(Locker(Arc::new(Shared { releaser, prefix: self.prefix, ttl })))
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

/// A request for one lock, made by [`Locker::lock`].
#[derive(Debug)]
#[must_use = "a request does nothing until it is acquired"]
pub struct LockRequest {
    releaser: Arc<Releaser>,
    key: Result<LockKey, LockError>,
    ttl: Result<Ttl, LockError>,
}

impl LockRequest {
    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        self.releaser.backend()
    }

    /// How long the lock is held at most, in whole milliseconds; the locker's `expire` by default,
    /// at least 10 ms.
    pub fn expire(mut self, expire: Duration) -> Self {
        self.ttl = Ttl::new(expire);
        self
    }

    /// Acquires the lock in one try.
    ///
    /// # Errors
    /// - [`is_contended`](LockError::is_contended) when another holder has it.
    /// - [`is_unavailable`](LockError::is_unavailable) when the backend gives no answer within its
    ///   deadline, or refuses. The lock is not held then; a request that may still land is
    ///   released in the background.
    /// - [`is_wrong_type`](LockError::is_wrong_type) when the key holds data that is no lock.
    /// - [`is_invalid_key`](LockError::is_invalid_key) and
    ///   [`is_invalid_option`](LockError::is_invalid_option), before anything is sent.
    ///
    /// # Cancel safety
    /// Dropping the future leaves no lock behind: what a request on its way is granted is released
    /// in the background. When the connection breaks as well, the lock can remain for `expire`.
    pub async fn acquire(self) -> Result<LockGuard, LockError> {
        self.grant_or_key().await?.map_err(|key| LockError::contended(key.as_str()))
    }

    /// Acquires the lock in one try; `None` when another holder has it.
    ///
    /// # Errors
    /// As [`acquire`](LockRequest::acquire), but for the busy lock.
    ///
    /// # Cancel safety
    /// As [`acquire`](LockRequest::acquire).
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// if let Some(guard) = locker.lock("job:nightly").try_acquire().await? {
    ///     // … the nightly job …
    ///     guard.release().await?;
    /// }
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn try_acquire(self) -> Result<Option<LockGuard>, LockError> {
        self.grant_or_key().await.map(Result::ok)
    }

    /// The guard, or the key that another holder has.
    async fn grant_or_key(self) -> Result<Result<LockGuard, LockKey>, LockError> {
        let key = self.key?;
        match self.ttl {
            Ok(ttl) => try_acquire(self.releaser, key, ttl).await,
            Err(error) => Err(error.with_key(key.as_str())),
        }
    }

    /// Acquires the lock, runs the body while the lease is held, and releases.
    ///
    /// The body is not polled after the lease's deadline, it is dropped before the lock is
    /// released, and its value is given back whatever becomes of the release.
    ///
    /// # Errors
    /// As [`acquire`](LockRequest::acquire), and [`is_lost`](LockError::is_lost) when the lease
    /// ended before the body did.
    ///
    /// # Panics
    /// When the body does; the release is handed to the background first.
    ///
    /// # Cancel safety
    /// Dropping the future drops the body, then releases in the background.
    pub async fn run<F: Future>(self, body: F) -> Result<F::Output, LockError> {
        Run::new(self.acquire(), body).await
    }
}
