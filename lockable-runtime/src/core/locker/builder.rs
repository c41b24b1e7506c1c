//! The settings of a locker, and making it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Locker;
use crate::core::acquire::Acquirer;
use crate::core::backend::{BackendContext, Fault};
use crate::core::naming::namespace::Namespace;
use crate::core::process::clock::within;
use crate::core::settings::Settings;
use crate::core::settings::defaults::{Cut, Readers, cut};
use crate::core::settings::url_settings::Values;
use crate::core::telemetry;
use crate::core::types::credentials::Credentials;
use crate::core::types::error::LockError;
use crate::core::types::options::Ttl;
#[cfg(feature = "tls-no-provider")]
use crate::core::types::pem::Pem;
use crate::core::types::reporting::Reporting;
use crate::core::types::secret::Secret;
use crate::open::open;

/// Settings of a [`Locker`]; they have priority over those in its URL.
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
    values: Values,
    reporting: Reporting,
    #[cfg(lockable_internals)]
    recheck_delay: Duration,
}

/// Delays the periodic rechecks of waiting calls by this much, so that only a message serves them before.
#[cfg(lockable_internals)]
pub fn rechecks_later(mut builder: LockerBuilder, delay: Duration) -> LockerBuilder {
    builder.recheck_delay = delay;
    builder
}

impl Default for LockerBuilder {
    /// As [`Locker::builder`].
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            readers: Readers::default(),
            values: Values::default(),
            reporting: Reporting::default(),
            #[cfg(lockable_internals)]
            recheck_delay: Duration::ZERO,
        }
    }
}

impl LockerBuilder {
    /// Sets the URL of the backend, as [`Locker::connect`] takes it.
    ///
    /// This or [`shared_url`](Self::shared_url) is required.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        (self.settings.url, self.readers) = (url.into(), Readers::Lockers);
        self
    }

    /// Sets the URL of the backend, if other programs read it too, as a platform's `REDIS_URL`.
    ///
    /// Settings for other programs are ignored; a warning lists them when the locker is made, and so does the report of
    /// [`Locker::check`]. A setting that resembles one of lockable's, or that could be meant to switch certificate
    /// checks off, is an error as in every URL.
    pub fn shared_url(mut self, url: impl Into<String>) -> Self {
        (self.settings.url, self.readers) = (url.into(), Readers::Others);
        self
    }

    /// Sets the start of every key; `"disLock:"` by default, as in the annotation this crate mirrors.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.values.prefix = Some(prefix.into());
        self
    }

    /// Sets the start of all names in Redis that are not locks; `"lockable"` by default.
    ///
    /// These are the fence counters, the queues, the channels of wake-ups, and the keys with which a new connection
    /// tests its server; in memory there are none. So a user with the rights `~shop:* &shop:*` can lock with
    /// `prefix("shop:")` and `namespace("shop:lockable")`. Choose a namespace that no lock key begins with.
    ///
    /// # Guarantees
    /// Lockers with different namespaces still exclude each other, because their locks are the same keys.
    ///
    /// # What this does not guarantee
    /// Two namespaces are two queues and two fence counters: no lock is handed off between them, and their fencing
    /// tokens have no common order. So all lockers that share locks need the same namespace. Change it, like a prefix,
    /// only when the old version no longer runs.
    ///
    /// # Errors
    /// [`connect`](Self::connect) returns [`InvalidOption`](crate::LockErrorKind::InvalidOption) for a text that is
    /// empty, longer than 256 bytes, or has white space, a control character, `{` or `}`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.values.namespace = Some(namespace.into());
        self
    }

    /// Sets the name under which operators find this process at the server, such as that of the service.
    ///
    /// The default is `OTEL_SERVICE_NAME`, or else the file name of the program.
    ///
    /// Each connection that locks gets the name `lockable:<process>:<name>@<host>:<pid>` by `CLIENT SETNAME`.
    /// Characters that servers refuse are percent-encoded, and the name is cut to 64 bytes.
    /// [`Admin::processes`](crate::admin::Admin::processes) reads it. Without the right `+client|setname`, connections
    /// have no name, and lock all the same.
    pub fn service_name(mut self, name: impl Into<String>) -> Self {
        self.settings.service = Some(name.into());
        self
    }

    /// Sets the lease of locks that set none of their own; 10 s by default, at least 10 ms.
    pub fn expire(mut self, expire: Duration) -> Self {
        self.values.expire = Some(expire);
        self
    }

    /// Sets how many replicas must have a lock before it counts; none by default.
    ///
    /// A failover to a replica that has confirmed a lock does not lose it. Set it to the number of replicas that can be
    /// promoted. See [confirmed by replicas](crate::guide::failover#confirmed-by-replicas) for costs and limits.
    ///
    /// # Guarantees
    /// - A body starts, and a guard is returned, only after this many replicas have received the lock.
    /// - A renewal that they do not confirm does not lengthen the lease.
    ///
    /// # What this does not guarantee
    /// - A failover to a replica that is none of these can lose the lock.
    /// - A release is not confirmed: after a failover a free lock may be held again until its lease ends.
    ///
    /// # Errors
    /// - [`connect`](Self::connect) returns [`InvalidOption`](crate::LockErrorKind::InvalidOption) with `memory://`.
    /// - [`connect`](Self::connect), or the first call, returns [`Refused`](crate::LockErrorKind::Refused) if the
    ///   server has no `WAIT`, or the user has no right to it.
    /// - A call returns [`is_unavailable`](LockError::is_unavailable) if fewer replicas confirm the lock within a third
    ///   of the [`command_deadline`](Self::command_deadline). The lock is released in the background.
    pub fn replicas(mut self, count: u8) -> Self {
        self.values.replicas = Some(count);
        self
    }

    /// Sets the longest wait for the reply to one command; 1 s by default, far above any healthy one.
    ///
    /// A call may wait for two replies: to its own request, and before it to the release of a lock of the same key that
    /// this process gave up.
    pub fn command_deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadlines.command = deadline;
        self
    }

    /// Sets the longest time to open a connection, login included; 2 s by default.
    pub fn connect_deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadlines.connect = deadline;
        self
    }

    /// Redacts keys in events, spans, errors and `{:?}`, for keys with personal data.
    ///
    /// See [redacted keys](crate::telemetry#redacted-keys).
    pub fn redact_keys(mut self) -> Self {
        self.reporting.redacts_keys = true;
        self
    }

    /// Sets how long a call may wait before a warning; 30 s by default, [`Duration::MAX`] switches it off.
    ///
    /// The call continues to wait, and [warns again](crate::telemetry#spans-and-events). Of the calls of a process that
    /// wait for one key, one warns. The warning says what has the lock; if the holder is of this process, or has the
    /// call's [request id](crate::RequestId), that the call may wait for itself, as a body that waits for a task which
    /// wants its lock.
    ///
    /// The campaigns of [`lead`](crate::LockRequest::lead) log no warning. A call that waits for a pause, a ticket or a
    /// finished run with `once` logs that once: when it begins to wait, or after the same time if it sent no request
    /// itself.
    pub fn warn_waited_over(mut self, patience: Duration) -> Self {
        self.reporting.waited_over = (patience < Duration::MAX).then_some(patience);
        self
    }

    /// Sets the root certificates to trust with `rediss://`, `rediss-sentinel://` and `rediss-cluster://`.
    ///
    /// They replace the system's; a text may have several. [`Pem::file`] reads a file for each new connection; a text
    /// and a [function](Secret::from_fn) are taken too.
    ///
    /// # Guarantees
    /// A server or a Sentinel is used only if its certificate is signed by the authority of a root certificate, is
    /// valid now, and has the host of the URL, or the one that Sentinels or nodes name. No setting weakens these
    /// checks.
    ///
    /// # Errors
    /// - [`connect`](Self::connect) returns [`InvalidOption`](crate::LockErrorKind::InvalidOption) if this is no
    ///   certificate, if the file cannot be read, or if the URL encrypts nothing; with `memory://` it has no effect.
    /// - A call returns [`Refused`](crate::LockErrorKind::Refused), with advice, if its server has no such certificate,
    ///   or if a new connection gets [no valid secret](Secret#errors).
    #[cfg(feature = "tls-no-provider")]
    pub fn root_certificate(mut self, roots: impl Into<Secret<Pem>>) -> Self {
        self.settings.root_certificate = Some(roots.into());
        self
    }

    /// Sets the client's own certificate and its key, for servers that require one (mutual TLS).
    ///
    /// [`Pem::files`] reads both for each new connection; a text that has both, and a [function](Secret::from_fn), are
    /// taken too. Certificates of the authorities between this one and the root may follow it. Redis servers and
    /// Sentinels receive the same certificate. It does not log in: the user is that of the URL or of
    /// [`credentials`](Self::credentials).
    ///
    /// # Errors
    /// - [`connect`](Self::connect) returns [`InvalidOption`](crate::LockErrorKind::InvalidOption) if these are no
    ///   certificate and no key, if the key is that of another certificate or needs a password, if a file cannot be
    ///   read, or if the URL encrypts nothing; with `memory://` they have no effect.
    /// - A call returns [`Refused`](crate::LockErrorKind::Refused) if its server refuses the certificate, or if a new
    ///   connection gets [no valid secret](Secret#errors).
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// use lockable_runtime::{Locker, Pem};
    ///
    /// let locker = Locker::builder()
    ///     .url("rediss-sentinel://s1,s2,s3/mymaster")
    ///     .root_certificate(Pem::file("/etc/redis/ca.pem"))
    ///     .client_certificate(Pem::files(["/etc/redis/app.pem", "/etc/redis/app.key"]))
    ///     .connect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "tls-no-provider")]
    pub fn client_certificate(mut self, own: impl Into<Secret<Pem>>) -> Self {
        self.settings.client_certificate = Some(own.into());
        self
    }

    /// Sets whose cryptography TLS uses; by default that of the process.
    ///
    /// The default is [`CryptoProvider::get_default`](rustls::crypto::CryptoProvider::get_default) when the locker is
    /// made, and with the feature `tls` ring where the program has chosen none; see [whose
    /// cryptography](crate::guide::which_redis#whose-cryptography).
    ///
    /// # Errors
    /// [`connect`](Self::connect) returns [`InvalidOption`](crate::LockErrorKind::InvalidOption) if the URL encrypts,
    /// and there is no provider.
    #[cfg(feature = "tls-no-provider")]
    pub fn crypto_provider(mut self, provider: Arc<rustls::crypto::CryptoProvider>) -> Self {
        self.settings.crypto_provider = Some(provider);
        self
    }

    /// Sets the user and the password of new connections, for credentials that change.
    ///
    /// [`Credentials::file`] reads a password from a file, and [`Secret::from_fn`] takes tokens of a cloud's identity
    /// service. Sentinels receive [others](Self::sentinel_credentials).
    ///
    /// # Errors
    /// - [`connect`](Self::connect) returns [`InvalidOption`](crate::LockErrorKind::InvalidOption) if the file cannot
    ///   be read, or has no password.
    /// - A call returns [`Refused`](crate::LockErrorKind::Refused) if a new connection gets [no valid
    ///   secret](Secret#errors), or one that the server refuses.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// use lockable_runtime::{Credentials, Locker};
    ///
    /// let locker = Locker::builder()
    ///     .url("rediss://cache.example.com")
    ///     .credentials(Credentials::file("app", "/run/secrets/redis"))
    ///     .connect()
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn credentials(mut self, credentials: impl Into<Secret<Credentials>>) -> Self {
        self.settings.credentials = Some(credentials.into());
        self
    }

    /// Sets the user and the password for Sentinels; none by default.
    ///
    /// Servers never receive these, and Sentinels never those of the servers. Without Sentinels in the URL they have no
    /// effect.
    ///
    /// # Errors
    /// As [`credentials`](Self::credentials); a call returns [`Refused`](crate::LockErrorKind::Refused) when all
    /// Sentinels refuse them, or get no valid secret.
    pub fn sentinel_credentials(mut self, credentials: impl Into<Secret<Credentials>>) -> Self {
        self.settings.sentinel_credentials = Some(credentials.into());
        self
    }

    /// Makes the locker and connects from the current runtime.
    ///
    /// # Errors
    /// - Those of [`Locker::connect`].
    /// - [`InvalidOption`](crate::LockErrorKind::InvalidOption) for an `expire` under 10 ms, and as each setting says.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind but a connection that is being opened.
    pub async fn connect(self) -> Result<Locker, LockError> {
        let deadlines = self.settings.deadlines;
        let locker = self.connect_lazy()?;
        let backend = &locker.context().backend;
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
    /// - [`InvalidUrl`](crate::LockErrorKind::InvalidUrl) and [`InvalidOption`](crate::LockErrorKind::InvalidOption),
    ///   as [`connect`](Self::connect). Files of secrets are read here, too.
    /// - [`is_unavailable`](LockError::is_unavailable) when the system gives no thread or no randomness.
    pub fn connect_lazy(mut self) -> Result<Locker, LockError> {
        let Cut { url, ignored } = cut(&self.settings.url, self.readers, &mut self.values)?;
        telemetry::settings_ignored(&ignored);
        self.settings.url = url;
        if self.settings.sentinel_credentials.is_none() {
            let of_url = self.values.sentinel_credentials()?;
            self.settings.sentinel_credentials = of_url.map(Secret::from);
        }
        let namespace = self.values.namespace.as_deref().map(Namespace::new).transpose()?;
        self.settings.namespace = namespace.unwrap_or_default();
        self.settings.replicas = self.values.replicas.unwrap_or_default();
        let expire = self.values.expire.map(|expire| Ttl::new("expire", expire));
        let ttl = expire.transpose()?.unwrap_or_default();
        let command_deadline = self.settings.deadlines.command;
        let context = BackendContext::new(open(&self.settings)?, command_deadline, self.reporting);
        #[cfg(lockable_internals)]
        let context = context.rechecked_later(self.recheck_delay);
        Ok(self.on(context, ttl)?.ignoring(ignored))
    }

    pub(crate) fn on(self, context: BackendContext, ttl: Ttl) -> Result<Locker, LockError> {
        let acquirer = Acquirer::new(Arc::new(context))?;
        // Each time, because a recorder may have been installed since the last one.
        telemetry::describe();
        let prefix = self.values.prefix.unwrap_or_else(|| DEFAULT_PREFIX.to_owned());
        Ok(Locker::new(acquirer, prefix, self.settings.namespace, ttl))
    }
}

impl fmt::Debug for LockerBuilder {
    /// Without the URL, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockerBuilder")
            .field("prefix", &self.values.prefix)
            .field("namespace", &self.values.namespace)
            .field("expire", &self.values.expire)
            .finish_non_exhaustive()
    }
}

/// What every lock key starts with unless another prefix is set.
const DEFAULT_PREFIX: &str = "disLock:";
