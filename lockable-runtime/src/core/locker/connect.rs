//! Lockers by a URL, by the environment, and in memory.

use super::Locker;
use super::builder::LockerBuilder;
use crate::core::settings::environment::{self, Variable};
use crate::core::types::error::{LockError, LockErrorKind};

impl Locker {
    /// Connects to the backend that the URL names, with the defaults of [`Locker::builder`].
    ///
    /// - `redis://user:password@host:6379/0`: a Redis (7.0 or later) or Valkey server. The user, the password, the port
    ///   and the database are optional.
    /// - `redis-sentinel://user:password@host:26379,host:26379/NAME/0`: the primary that these Sentinels know by that
    ///   name, also after a failover. The user and the password are the server's; the Sentinels get
    ///   `?sentinel_user=…&sentinel_password=…`, or none. Their port is optional.
    /// - `redis-cluster://user:password@host:6379,host:6379`: a Redis or Valkey Cluster. List a few nodes, primaries or
    ///   replicas, or a DNS name that resolves to one; the others are discovered. The user and the password are those
    ///   of every node. The port is optional; there is no database but 0.
    /// - `rediss://…`, `rediss-sentinel://…`, `rediss-cluster://…`: the same over TLS, Sentinels and all nodes
    ///   included, with the feature `tls`.
    /// - `redis+unix:///path/to/socket?db=0`: a server with a unix socket (`unix://` works too).
    /// - `memory://`: as [`in_memory`](Locker::in_memory). Every locker of the process with `memory://name` shares the
    ///   store of that name. Its timers are those of the caller's runtime, whose clock a test may pause.
    ///
    /// # Settings in the URL
    /// As in `redis://host:6379/0?prefix=shop:&namespace=shop:lockable&expire=30s`:
    ///
    /// | parameter | the same as | value |
    /// |---|---|---|
    /// | `prefix` | [`LockerBuilder::prefix`] | a text, percent-encoded where it has `&`, `#`, `%` or white space; `prefix=` is no prefix |
    /// | `namespace` | [`LockerBuilder::namespace`] | a text, as for `prefix`, but not empty |
    /// | `expire` | [`LockerBuilder::expire`] | a duration as in the attribute: `30s`, `1500ms`, `1m30s`, or a whole number of seconds, which is no multiple of 1000 |
    /// | `replicas`, not with `memory://` | [`LockerBuilder::replicas`] | a number from 0 to 255 |
    ///
    /// What the builder sets has priority over the URL, and the URL over the default. The only other parameters are
    /// those of the address: `protocol=resp3`, the two of Sentinels, and `db`, `user` and `pass` of a socket. Any other
    /// is an error, because a misspelt prefix would be another lock; for a URL with parameters for other programs, use
    /// [`shared_url`](LockerBuilder::shared_url).
    ///
    /// # Errors
    /// - [`InvalidUrl`](crate::LockErrorKind::InvalidUrl) when the URL names no backend, has an unknown parameter, or
    ///   gives a parameter an invalid value. The message names the parameter and never shows a value.
    /// - [`is_unavailable`](LockError::is_unavailable) when the server does not reply within two seconds, or refuses: a
    ///   wrong password, a missing right, a version before 7.0.
    ///
    /// # Panics
    /// With `memory://`, a later call that waits or holds a lock panics on a tokio runtime that has no timers
    /// (`enable_time`).
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind but a connection that is being opened.
    pub async fn connect(url: impl Into<String>) -> Result<Self, LockError> {
        Self::builder().url(url).connect().await
    }

    /// Makes a locker on an empty store in this process, which only its clones share.
    ///
    /// Use it for tests, and for work that runs in one process only; it needs no runtime and no server.
    /// [`TestLocks`](crate::testing::TestLocks) has such a store, and can provoke the rare cases.
    ///
    /// # Panics
    /// When the system gives no thread for the background, as [`std::thread::spawn`] does.
    #[must_use]
    #[track_caller]
    #[expect(clippy::panic, reason = "there is nothing that a caller could do about it")]
    pub fn in_memory() -> Self {
        match Self::builder().url("memory://").connect_lazy() {
            Ok(locker) => locker,
            Err(error) => panic!("{error}"),
        }
    }

    /// Makes a builder with the default settings.
    pub fn builder() -> LockerBuilder {
        LockerBuilder::default()
    }

    /// Makes a locker for the URL in `LOCKABLE_URL`, or else in `REDIS_URL`; it connects at its first use.
    ///
    /// An empty variable counts as unset. `REDIS_URL` is read as a [`shared_url`](LockerBuilder::shared_url), because
    /// other programs read it as well.
    ///
    /// # Errors
    /// - [`NotConfigured`](crate::LockErrorKind::NotConfigured) when neither variable is set.
    /// - [`InvalidUrl`](crate::LockErrorKind::InvalidUrl), as [`connect`](Locker::connect).
    /// - [`InvalidOption`](crate::LockErrorKind::InvalidOption) when a variable is not UTF-8, and when
    ///   `LOCKABLE_PREFIX` or `LOCKABLE_NAMESPACE` is set: both are settings of the URL.
    pub fn from_env() -> Result<Self, LockError> {
        Self::from_environment().map(|(locker, _)| locker)
    }

    /// The locker that the environment names, and the variable.
    pub(crate) fn from_environment() -> Result<(Self, &'static str), LockError> {
        let Some(Variable { name, url, is_shared }) = environment::url()? else {
            let error = LockError::new(LockErrorKind::NotConfigured, "no locker");
            return Err(error.advise(
                "call `lockable_runtime::install` at start-up, or set LOCKABLE_URL or REDIS_URL",
            ));
        };
        let builder = Self::builder();
        let builder = if is_shared { builder.shared_url(url) } else { builder.url(url) };
        match builder.connect_lazy() {
            Ok(locker) => Ok((locker, name)),
            Err(error) => Err(LockError::new(error.kind(), format!("{name}: {error}"))),
        }
    }
}
