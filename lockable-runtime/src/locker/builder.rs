//! The settings of a locker, and making it.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::Locker;
use super::defaults::Defaults;
use super::url_settings::{Known, Readers, known};
use crate::backend::{Fault, Link, Settings, open};
use crate::locker::acquire::Acquirer;
use crate::telemetry;
use crate::types::clock::within;
use crate::types::credentials::{Credentials, CredentialsSource};
use crate::types::error::LockError;
use crate::types::namespace::Namespace;
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
/// assert_eq!(guard.lease().key().as_str(), "shop:order:7");
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until it connects"]
pub struct LockerBuilder {
    settings: Settings,
    readers: Readers,
    prefix: Option<String>,
    namespace: Option<String>,
    expire: Option<Duration>,
    reporting: Reporting,
}

impl LockerBuilder {
    pub(super) fn new() -> Self {
        Self {
            settings: Settings::default(),
            readers: Readers::default(),
            prefix: None,
            namespace: None,
            expire: None,
            reporting: Reporting::default(),
        }
    }

    /// Which backend; see [`Locker::connect`]. This or [`shared_url`](Self::shared_url) is required.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        (self.settings.url, self.readers) = (url.into(), Readers::Lockers);
        self
    }

    /// The same by a URL that other programs read too, as a platform writes it into `REDIS_URL`.
    ///
    /// Settings of other programs are ignored: their names are in a warning when the locker is made, and in the
    /// report of [`Locker::check`]. One that is nearly a setting of lockable's, or that could be meant to switch
    /// checks of certificates off, is an error as in every URL.
    ///
    /// # Examples
    /// ```
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lockable_runtime::Locker;
    ///
    /// let url = "redis://cache.internal/0?socket_timeout=5";
    /// assert!(Locker::builder().url(url).connect_lazy().is_err());
    /// let locker = Locker::builder().shared_url(url).connect_lazy()?;
    /// # Ok(())
    /// # }
    /// # #[cfg(feature = "redis")]
    /// # example().unwrap();
    /// ```
    pub fn shared_url(mut self, url: impl Into<String>) -> Self {
        (self.settings.url, self.readers) = (url.into(), Readers::Others);
        self
    }

    /// What every key starts with; `"disLock:"` by default, as in the annotation this crate mirrors. It has
    /// priority over that of the URL; see [`Locker::connect`].
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// What all names in Redis begin with that are not locks; `"lockable"` by default.
    ///
    /// These are the fence counters, the queues, the channels of grants, and the keys with which a new connection
    /// tries its server: `<namespace>:…`. So a user with the rights `~shop:* &shop:*` can lock with
    /// `prefix("shop:")` and `namespace("shop:lockable")`. Choose one that no lock key begins with. It has
    /// priority over that of the URL; see [`Locker::connect`]. In memory there are no such names.
    ///
    /// # Guarantees
    /// Lockers with different namespaces exclude each other as others do, because their locks are the same keys.
    ///
    /// # What this does not guarantee
    /// Two namespaces are two queues and two fence counters. A lock is not handed off from one to the other, and
    /// its fencing tokens of both have no common order. So all who lock the same keys need the same namespace: a
    /// namespace, like a prefix, is changed when the old version is gone.
    ///
    /// # Errors
    /// [`connect`](LockerBuilder::connect) and [`connect_lazy`](LockerBuilder::connect_lazy) return
    /// [`InvalidOption`](crate::LockErrorKind::InvalidOption) for a text that is empty, longer than 256 bytes, or
    /// has white space, a control character, `{` or `}`.
    ///
    /// # Examples
    /// ```
    /// # fn example() -> Result<(), lockable_runtime::LockError> {
    /// use lockable_runtime::Locker;
    ///
    /// let builder = Locker::builder().url("memory://").prefix("shop:");
    /// builder.clone().namespace("shop:lockable").connect_lazy()?;
    /// let error = builder.namespace("{shop}").connect_lazy().unwrap_err();
    /// assert_eq!(error.kind(), lockable_runtime::LockErrorKind::InvalidOption);
    /// # Ok(())
    /// # }
    /// # example().unwrap();
    /// ```
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// What this process is called at the server, where operators look for the holder of a lock: such as the name of
    /// the service. By default it is that of `OTEL_SERVICE_NAME`, or else the file name of the program.
    ///
    /// Each connection that locks is named `lockable:<process>:<name>@<host>:<pid>` by `CLIENT SETNAME`, with
    /// its greeting; characters that servers refuse in a name are percent-encoded, and the name is cut to 64 bytes.
    /// [`Admin::processes`](crate::admin::Admin::processes) reads that.
    ///
    /// # What this does not guarantee
    /// A user without the right `+client|setname` locks all the same, on connections without a name.
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// use lockable_runtime::Locker;
    ///
    /// let locker = Locker::builder().url("memory://").service_name("checkout").connect().await?;
    /// let processes = locker.admin().processes().await?;
    /// assert_eq!(processes[0].service(), "checkout");
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub fn service_name(mut self, name: impl Into<String>) -> Self {
        self.settings.service = Some(name.into());
        self
    }

    /// The lease of locks that set none of their own; 10 s by default, at least 10 ms. It has priority over that of
    /// the URL; see [`Locker::connect`].
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

    /// How long a call may wait before a warning names its key; off by default. It is logged once,
    /// while the call continues to wait.
    pub fn warn_waited_over(mut self, patience: Option<Duration>) -> Self {
        self.reporting.waited_over = patience;
        self
    }

    /// The root certificate to trust with `rediss://`, `rediss-sentinel://` and `rediss-cluster://`, in PEM form, in
    /// place of the system's; several, one behind the other, are trusted alike.
    ///
    /// # Guarantees
    /// A server or a Sentinel is used only if its certificate is signed by the authority of a root certificate, is
    /// valid now, and has the host of the URL, or the one that Sentinels or nodes name. There is no setting that checks less.
    ///
    /// # Errors
    /// [`connect`](LockerBuilder::connect) and [`connect_lazy`](LockerBuilder::connect_lazy) return
    /// [`InvalidOption`](crate::LockErrorKind::InvalidOption) if this is no certificate, and if nothing is encrypted
    /// with the URL; `memory://` leaves it alone. A call whose server has no such certificate returns
    /// [`Refused`](crate::LockErrorKind::Refused), with what to do.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lockable_runtime::Locker;
    ///
    /// let authority = std::fs::read("/etc/redis/ca.pem")?;
    /// let url = "rediss://cache.example.com";
    /// let locker = Locker::builder().url(url).root_certificate(authority).connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "tls")]
    pub fn root_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.settings.root_certificate = Some(pem.into());
        self
    }

    /// The client's own certificate with its key, both in PEM form, for servers that ask for one (mutual TLS).
    ///
    /// Behind the certificate, those of the authorities between it and the root may follow. It is shown to Redis
    /// servers and to Sentinels alike.
    ///
    /// # What this does not guarantee
    /// It does not log in: the user of a connection is that of the URL or of [`credentials`](Self::credentials). A
    /// certificate that is about to expire needs a new locker, because this one shows what it was given.
    ///
    /// # Errors
    /// [`connect`](LockerBuilder::connect) and [`connect_lazy`](LockerBuilder::connect_lazy) return
    /// [`InvalidOption`](crate::LockErrorKind::InvalidOption) if these are no certificate and no key, if the key is
    /// that of another certificate or needs a password, and if nothing is encrypted with the URL; `memory://`
    /// leaves them alone. A call whose server refuses the certificate returns [`Refused`](crate::LockErrorKind::Refused).
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::fs;
    /// use lockable_runtime::Locker;
    ///
    /// let locker = Locker::builder()
    ///     .url("rediss-sentinel://s1,s2,s3/mymaster")
    ///     .root_certificate(fs::read("/etc/redis/ca.pem")?)
    ///     .client_certificate(fs::read("/etc/redis/app.pem")?, fs::read("/etc/redis/app.key")?)
    ///     .connect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "tls")]
    pub fn client_certificate(
        mut self,
        certificate_pem: impl Into<Vec<u8>>,
        key_pem: impl Into<Vec<u8>>,
    ) -> Self {
        self.settings.client_certificate = Some((certificate_pem.into(), key_pem.into()));
        self
    }

    /// Where the user and the password of each new connection come from, for credentials that change: tokens of
    /// a cloud's identity service, or a password that is rotated. They have priority over those of the URL.
    ///
    /// # Guarantees
    /// - The callback is called whenever a connection to a Redis server is opened: for each runtime that uses the
    ///   locker, for the background's renewals and releases, for the subscription of calls that wait, and once for a
    ///   [`check`](Locker::check). What it gives serves for that opening alone. It is never called for Sentinels;
    ///   see [`sentinel_credentials`](Self::sentinel_credentials).
    /// - It runs on a thread of its own, in the context of a tokio runtime with timers and sockets: it may block, and
    ///   delays nothing but the connection that it is called for.
    /// - No error, event or `{:?}` of this library shows a password that it gave.
    ///
    /// # What this does not guarantee
    /// A connection that is open stays open when its credentials expire, as long as the server lets it. Several calls
    /// may run at the same time, at most 32 for one locker. While a server cannot be reached, the callback is called
    /// at each try: store for a moment what costs much to make.
    ///
    /// # Errors
    /// A call that needs the connection returns [`Refused`](crate::LockErrorKind::Refused) when the callback fails or
    /// panics, with its words, and with its error as the source; [`is_unavailable`](LockError::is_unavailable) when
    /// it takes longer than three quarters of the [connect deadline](Self::connect_deadline), after which it is
    /// dropped; and [`Refused`](crate::LockErrorKind::Refused) when the server refuses what it gave.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// use lockable_runtime::{Credentials, Locker};
    /// # async fn token() -> Result<String, std::io::Error> { Ok(String::new()) }
    ///
    /// let locker = Locker::builder()
    ///     .url("rediss://cache.example.com")
    ///     .credentials(|| async { Ok::<_, std::io::Error>(Credentials::new("app", token().await?)) })
    ///     .connect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn credentials<F, A, E>(mut self, source: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.settings.credentials = Some(CredentialsSource::new(source));
        self
    }

    /// With which user and password Sentinels are asked; without any by default. They have priority over
    /// `sentinel_user` and `sentinel_password` in the URL.
    ///
    /// Servers never get these, and Sentinels never get those of the servers. Where the URL has no Sentinels, they
    /// have no effect.
    ///
    /// # Errors
    /// A call returns [`Refused`](crate::LockErrorKind::Refused) when all Sentinels refuse them.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// use lockable_runtime::{Credentials, Locker};
    ///
    /// let locker = Locker::builder()
    ///     .url("redis-sentinel://app:secret@s1,s2,s3/mymaster")
    ///     .sentinel_credentials(Credentials::new("watcher", "another secret"))
    ///     .connect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sentinel_credentials(mut self, credentials: Credentials) -> Self {
        self.settings.sentinel_credentials = Some(credentials);
        self
    }

    /// Makes the locker and connects from the current runtime.
    ///
    /// # Errors
    /// As [`Locker::connect`], and [`InvalidOption`](crate::LockErrorKind::InvalidOption) for an
    /// `expire` under 10 ms, for a [`namespace`](LockerBuilder::namespace) with which no name can begin, and for
    /// certificates that are none, or that are given although nothing is encrypted with the URL.
    ///
    /// # Cancel safety
    /// Nothing is left behind but a connection that is being opened.
    pub async fn connect(self) -> Result<Locker, LockError> {
        let deadlines = self.settings.deadlines;
        let locker = self.connect_lazy()?;
        let backend = &locker.link().backend;
        // The backend keeps the deadline itself; this one covers a runtime that does not run.
        let limit = deadlines.connect.saturating_add(deadlines.command);
        let outcome = within(|| backend.timer(limit), backend.connect()).await;
        outcome
            .unwrap_or_else(|| Err(Fault::no_answer(backend.name(), limit)))
            .map_err(Fault::into_error)?;
        Ok(locker)
    }

    /// Makes the locker without connecting; its first use connects.
    ///
    /// # Errors
    /// [`InvalidUrl`](crate::LockErrorKind::InvalidUrl) and
    /// [`InvalidOption`](crate::LockErrorKind::InvalidOption), as [`connect`](LockerBuilder::connect);
    /// [`is_unavailable`](LockError::is_unavailable) when the system gives no thread or no randomness.
    pub fn connect_lazy(mut self) -> Result<Locker, LockError> {
        let Known { url, ignored } = known(&self.settings.url, self.readers)?;
        telemetry::settings_ignored(&ignored);
        let (defaults, url) = Defaults::split_from(&url)?;
        self.settings.url = url;
        self.prefix = self.prefix.or(defaults.prefix);
        let namespace = self.namespace.as_deref().map(Namespace::new).transpose()?;
        self.settings.namespace = namespace.or(defaults.namespace).unwrap_or_default();
        let ttl = self.expire.map(|expire| Ttl::new("expire", expire)).transpose()?;
        let ttl = ttl.or(defaults.expire).unwrap_or_default();
        let command_deadline = self.settings.deadlines.command;
        let link = Link::new(open(&self.settings)?, command_deadline, self.reporting);
        Ok(self.on(link, ttl)?.ignoring(ignored))
    }

    /// The locker of a backend, whatever the URL names.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(crate) fn on(self, link: Link, ttl: Ttl) -> Result<Locker, LockError> {
        let acquirer = Acquirer::new(Arc::new(link))?;
        // Each time, because a recorder may have been installed since the last one.
        telemetry::describe();
        let prefix = self.prefix.unwrap_or_else(|| DEFAULT_PREFIX.to_owned());
        Ok(Locker::new(acquirer, prefix, self.settings.namespace, ttl))
    }
}

impl fmt::Debug for LockerBuilder {
    /// Without the URL, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockerBuilder")
            .field("prefix", &self.prefix)
            .field("namespace", &self.namespace)
            .field("expire", &self.expire)
            .finish_non_exhaustive()
    }
}

/// What every lock key starts with unless another prefix is set.
const DEFAULT_PREFIX: &str = "disLock:";
