//! What an expanded function calls. Only `#[distributed_lock]` may rely on these names.

use std::fmt;
use std::future::Future;
use std::time::Duration;

pub use self::answers::{FromLockError, Refused, RefusedBesideOnBusy, RefusedBesideOnError, Skip};
pub use self::returned::{Returned, RunsUnderTheLock, Value};
pub use self::values::{IntoExpire, IntoHold, IntoLockKey, IntoWait};
use crate::hold::guard::LockGuard;
pub use crate::hold::run::{EndsWell, LeaseCell, Run};
pub use crate::lease::{EndsEarly, Lease};
use crate::locker::Locker;
use crate::locker::blocking::{acquire_blocking, hold_blocking};
use crate::locker::global::default_locker;
use crate::locker::request::LockRequest;
use crate::telemetry;
use crate::types::error::LockError;
use crate::types::key::render;
pub use crate::types::key::{KeyPart, Part};
pub use crate::types::label::Label;
use crate::types::options::{OnLost, Once, Terms, Wait};

mod answers;
mod returned;
mod values;

/// One call of a decorated function, before its lock is acquired.
///
/// It becomes a [`LockRequest`] when it is awaited: only then is its locker looked up.
#[must_use]
pub struct Call {
    key: Result<String, LockError>,
    /// The locker's, where there is none.
    prefix: Option<&'static str>,
    /// The locker's, where there is none.
    expire: Option<Duration>,
    terms: Terms,
    blocking: bool,
    locker: Option<Locker>,
}

impl Call {
    /// A call whose key is rendered from the template in its label, at once.
    pub fn new(label: &'static Label, key: fmt::Arguments<'_>) -> Self {
        let template = label.lock().unwrap_or_default();
        let key = render(key, template).map_err(|(so_far, flaw)| {
            LockError::invalid_key(&so_far, format!("{flaw}, in the key template `{template}`"))
        });
        Self::with(label, key)
    }

    /// A call whose key was made by the user.
    pub fn with_key(label: &'static Label, key: impl IntoLockKey) -> Self {
        Self::with(label, Ok(key.into_lock_key().as_str().to_owned()))
    }

    fn with(label: &'static Label, key: Result<String, LockError>) -> Self {
        let terms = Terms { wait: Wait::Never, label, ..Terms::default() };
        Self { key, prefix: None, expire: None, terms, blocking: false, locker: None }
    }

    /// The option `prefix`.
    pub fn prefix(mut self, prefix: &'static str) -> Self {
        self.prefix = Some(prefix);
        self
    }

    /// The option `expire`.
    pub fn expire(mut self, expire: impl IntoExpire) -> Self {
        self.expire = Some(expire.into_expire());
        self
    }

    /// The option `wait` without a limit.
    pub fn wait_forever(mut self) -> Self {
        self.terms.wait = Wait::Forever;
        self
    }

    /// The option `wait` with its limit.
    pub fn wait(mut self, limit: impl IntoWait) -> Self {
        self.terms.wait = Wait::AtMost(limit.into_wait());
        self
    }

    /// The option `fair`.
    pub fn fair(mut self) -> Self {
        self.terms.fair = true;
        self
    }

    /// The option `blocking`.
    pub fn blocking(mut self) -> Self {
        self.blocking = true;
        self
    }

    /// The option `renew`.
    pub fn renew(mut self) -> Self {
        self.terms.renew = true;
        self
    }

    /// The option `max_hold`.
    pub fn max_hold(mut self, most: impl IntoHold) -> Self {
        self.terms.max_hold = Some(most.into_hold());
        self
    }

    /// The option `min_hold`.
    pub fn min_hold(mut self, least: impl IntoHold) -> Self {
        self.terms.min_hold = Some(least.into_hold());
        self
    }

    /// The option `once`.
    pub fn once(mut self, period: impl IntoHold) -> Self {
        self.terms.once = Some(Once::For(period.into_hold()));
        self
    }

    /// The option `on_lost = finish`.
    pub fn on_lost_finish(mut self) -> Self {
        self.terms.on_lost = OnLost::Finish;
        self
    }

    /// The option `locker`.
    pub fn locker(mut self, locker: &Locker) -> Self {
        self.locker = Some(locker.clone());
        self
    }

    async fn acquire(self) -> Result<LockGuard, LockError> {
        self.request()?.acquire().await
    }

    fn acquire_blocking(self) -> Result<LockGuard, LockError> {
        let may_block = self.blocking;
        acquire_blocking(self.request()?, may_block)
    }

    fn request(self) -> Result<LockRequest, LockError> {
        let label = self.terms.label;
        self.checked(label).inspect_err(|error| telemetry::acquisition_failed(label, error))
    }

    fn checked(self, label: &'static Label) -> Result<LockRequest, LockError> {
        let locker = self.locker.map_or_else(default_locker, Ok);
        let locker = locker.map_err(|error| error.labeled(label))?;
        let prefix = self.prefix.unwrap_or(locker.prefix());
        let key = self.key.map_err(|error| locker.link().reporting.redact(error).labeled(label))?;
        let request = locker.request(prefix, &key, self.terms);
        Ok(match self.expire {
            Some(expire) => request.expire(expire),
            None => request,
        })
    }
}

impl fmt::Debug for Call {
    /// Without the key: the locker that says whether it may be shown may not be known yet.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").finish_non_exhaustive()
    }
}

/// Acquires the lock of a call, runs the body while it is held, and releases.
pub fn run<F: Future>(call: Call, body: F) -> Run<F> {
    Run::new(call.acquire(), body)
}

/// The body's value, or the return type's own answer.
pub fn value<R: Refused>(outcome: Result<R, LockError>) -> R {
    outcome.unwrap_or_else(R::refused)
}

/// A value for a place that is never reached, and that has a type all the same.
#[must_use]
pub fn absent<T>() -> T {
    unreachable!("is behind `if false`")
}

/// Acquires, runs the body and releases on this thread, wherever that is; a body that has started cannot be stopped.
///
/// # Errors
/// As [`LockRequest::run`], and when there is no locker.
pub fn run_blocking<T>(call: Call, body: impl FnOnce(Lease) -> T) -> Result<T, LockError> {
    hold_blocking(call.acquire_blocking()?, body)
}

/// The same; when another holder has the lock, the body runs without a lease and gives the call's value.
///
/// # Errors
/// As [`run_blocking`], except for a busy lock.
pub fn run_blocking_even_when_busy<T>(
    call: Call,
    body: impl FnOnce(Option<Lease>) -> T,
) -> Result<T, LockError> {
    match call.acquire_blocking() {
        Ok(guard) => hold_blocking(guard, |lease| body(Some(lease))),
        Err(error) if error.is_busy() => {
            telemetry::skipped(&error);
            Ok(body(None))
        }
        Err(error) => Err(error),
    }
}

/// The body of a sync function with `once`, which leaves the lock done where it ends well. Without a lease it only says
/// what a busy call gives.
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
