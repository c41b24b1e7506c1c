//! What expanded code calls. Only `#[distributed_lock]` and `lock_key!` may rely on these names.

use std::fmt;
use std::future::Future;
use std::time::Duration;

pub use self::answers::{FromLockError, Refused, RefusedBesideOnBusy, RefusedBesideOnError, Skip};
pub use self::returned::{
    AfterRelease, Awaited, Consumed, Inside, Late, Returned, RunsUnderTheLock, Works,
};
pub use self::values::{IntoExpire, IntoHold, IntoLockKey, IntoLockKeys, IntoPermits, IntoWait};
pub use crate::core::hold::grant::Grant;
pub use crate::core::hold::run::{EndsWell, GrantCell, LeaseCell, LeasesCell, Run};
pub use crate::core::hold::set::Leases;
pub use crate::core::labels::label::Label;
pub use crate::core::lease::{EndsEarly, Lease};
use crate::core::locker::Locker;
use crate::core::locker::blocking::{acquire_blocking, hold_blocking};
use crate::core::locker::global::default_locker;
pub use crate::core::locker::request::Acquire;
use crate::core::locker::request::LockRequest;
use crate::core::telemetry;
use crate::core::types::error::LockError;
pub use crate::core::types::key::{KeyPart, Keys, Part};
use crate::core::types::key::{LockKey, render};
pub use crate::core::types::options::{OnLost, Once, Options, Wait};
pub use crate::core::types::permit::Permits;

mod answers;
mod returned;
mod values;

/// A call of a decorated function; an expanded function sets its options.
///
/// It becomes a [`LockRequest`] when it is awaited: only then is its locker looked up.
#[must_use]
pub struct Call<K = String> {
    /// Without the prefix.
    key: Result<K, LockError>,
    /// Absent for the locker's.
    pub prefix: Option<&'static str>,
    /// Absent for the locker's.
    pub expire: Option<Duration>,
    /// The other options.
    pub options: Options,
    /// Whether a sync function may block a thread of a runtime.
    pub blocking: bool,
    locker: Option<Locker>,
}

impl Call {
    /// Renders the key.
    pub fn new(label: &'static Label, key: fmt::Arguments<'_>) -> Self {
        Self::with(label, rendered(label.lock().unwrap_or_default(), key))
    }

    /// Takes the user's key.
    pub fn with_key(label: &'static Label, key: impl IntoLockKey) -> Self {
        Self::with(label, key.into_lock_key().map(|key| key.as_str().to_owned()))
    }

    /// Applies `permits = all(count)`; options that are set already are lost.
    pub fn all_permits(self, count: u32) -> Call<AllPermits> {
        Call::with(self.options.label, self.key.map(|key| AllPermits { key, count }))
    }
}

/// All permits of a key.
#[derive(Debug)]
pub struct AllPermits {
    key: String,
    count: u32,
}

impl Call<Vec<String>> {
    /// Renders the keys.
    pub fn of_all<const N: usize>(
        label: &'static Label,
        keys: [(&'static str, fmt::Arguments<'_>); N],
    ) -> Self {
        let keys = keys.into_iter().map(|(template, key)| rendered(template, key));
        Self::with(label, keys.collect())
    }

    /// Takes the user's keys.
    pub fn with_keys(label: &'static Label, keys: impl IntoLockKeys) -> Self {
        let text = |key: LockKey| key.as_str().to_owned();
        Self::with(label, keys.into_lock_keys().map(|keys| keys.into_iter().map(text).collect()))
    }
}

impl<K> Call<K> {
    fn with(label: &'static Label, key: Result<K, LockError>) -> Self {
        let options = Options { wait: Wait::Never, label, ..Options::default() };
        Self { key, prefix: None, expire: None, options, blocking: false, locker: None }
    }

    /// The option `locker`.
    pub fn locker(&mut self, locker: &Locker) {
        self.locker = Some(locker.clone());
    }
}

impl<K: Called> Call<K> {
    fn request(self) -> Result<LockRequest<K::Keys>, LockError> {
        let label = self.options.label;
        let count = |error: &LockError| telemetry::acquisition_failed(label, error);
        self.checked().map_err(|error| error.labeled(label)).inspect_err(count)
    }

    fn checked(self) -> Result<LockRequest<K::Keys>, LockError> {
        let locker = self.locker.map_or_else(default_locker, Ok)?;
        let key = self.key.map_err(|error| locker.context().reporting.redact(error))?;
        let prefix = self.prefix.unwrap_or(locker.prefix());
        let request = key.request(&locker, prefix, self.options);
        Ok(match self.expire {
            Some(expire) => request.expire(expire),
            None => request,
        })
    }
}

/// The text of one key, or of several.
pub trait Called: Sized + Send + 'static {
    /// The keys.
    type Keys: Acquire;

    /// The request for them.
    fn request(self, locker: &Locker, prefix: &str, options: Options) -> LockRequest<Self::Keys>;
}

impl Called for String {
    type Keys = LockKey;

    fn request(self, locker: &Locker, prefix: &str, options: Options) -> LockRequest {
        locker.request(prefix, self, options)
    }
}

impl Called for Vec<String> {
    type Keys = Vec<LockKey>;

    fn request(self, locker: &Locker, prefix: &str, options: Options) -> LockRequest<Self::Keys> {
        locker.request_all(prefix, self, options)
    }
}

impl Called for AllPermits {
    type Keys = Vec<LockKey>;

    fn request(self, locker: &Locker, prefix: &str, options: Options) -> LockRequest<Self::Keys> {
        locker.request(prefix, self.key, options).all_permits(self.count)
    }
}

type Granted<K> = <<K as Called>::Keys as Acquire>::Granted;

fn rendered(template: &'static str, key: fmt::Arguments<'_>) -> Result<String, LockError> {
    render(key, template).map_err(|(so_far, flaw)| {
        LockError::invalid_key(&so_far, format!("{flaw}, in the key template `{template}`"))
    })
}

/// Makes the key of `lock_key!`.
///
/// # Errors
/// When the text cannot be a lock key.
pub fn lock_key(template: &'static str, key: fmt::Arguments<'_>) -> Result<LockKey, LockError> {
    rendered(template, key).and_then(LockKey::new)
}

impl<K> fmt::Debug for Call<K> {
    /// Without the key, because its locker, which may redact it, may not be known yet.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").finish_non_exhaustive()
    }
}

/// Acquires, runs the body and releases.
pub fn run<F: Future, K: Called>(call: Call<K>, body: F) -> Run<F, Granted<K>> {
    Run::new(async { Acquire::acquire(call.request()?).await }, body)
}

/// The body's value, or the return type's own.
pub fn value<R: Refused>(outcome: Result<R, LockError>) -> R {
    outcome.unwrap_or_else(R::refused)
}

/// Gives a type to a place that is never reached.
#[must_use]
pub fn absent<T>() -> T {
    unreachable!("is behind `if false`")
}

/// Acquires, runs the body and releases on this thread; a body that has started cannot be stopped.
///
/// # Errors
/// As [`LockRequest::run`], and when there is no locker.
pub fn run_blocking<T, K: Called>(
    call: Call<K>,
    body: impl FnOnce(<Granted<K> as Grant>::Lease) -> T,
) -> Result<T, LockError> {
    let may_block = call.blocking;
    hold_blocking(acquire_blocking(call.request()?, may_block)?, body)
}

/// As [`run_blocking`], but if the lock is busy, the body runs without a lease and returns the call's value.
///
/// # Errors
/// As [`run_blocking`], except for a busy lock.
pub fn run_blocking_even_when_busy<T, K: Called>(
    call: Call<K>,
    body: impl FnOnce(Option<<Granted<K> as Grant>::Lease>) -> T,
) -> Result<T, LockError> {
    let may_block = call.blocking;
    match call.request().and_then(|request| acquire_blocking(request, may_block)) {
        Ok(guard) => hold_blocking(guard, |lease| body(Some(lease))),
        Err(error) if error.is_busy() => {
            telemetry::skipped(&error);
            Ok(body(None))
        }
        Err(error) => Err(error),
    }
}

/// A sync body that leaves the lock done after a good end. Without a lease it only returns the value for a busy lock.
pub fn once<L: Clone + Into<Option<Lease>>, T>(
    body: impl FnOnce(L) -> T,
    ended_well: fn(&T) -> bool,
) -> impl FnOnce(L) -> T {
    move |granted| {
        let lease = granted.clone().into();
        let value = body(granted);
        if let Some(lease) = lease.filter(|_| ended_well(&value)) {
            lease.ended_well(Duration::ZERO);
        }
        value
    }
}

/// Calls a closure; clippy would have it written in place.
pub fn start<G, T>(body: impl FnOnce(G) -> T, granted: G) -> T {
    body(granted)
}
