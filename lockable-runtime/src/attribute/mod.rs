//! What an expanded function calls. Only `#[distributed_lock]` may rely on these names.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Duration;

use crate::hold::guard::LockGuard;
pub use crate::hold::run::{LeaseCell, Run};
pub use crate::lease::Lease;
use crate::locker::Locker;
use crate::locker::blocking::{acquire_blocking, hold_blocking};
use crate::locker::global::default_locker;
use crate::locker::request::LockRequest;
use crate::telemetry;
use crate::types::error::{LockError, LockErrorKind};
pub use crate::types::key::Part;
use crate::types::key::{LockKey, render};
use crate::types::options::{OnLost, Wait};

/// One call of a decorated function, before its lock is acquired.
#[must_use]
pub struct Call {
    key: Result<String, LockError>,
    prefix: Option<&'static str>,
    expire: Option<Duration>,
    wait: Wait,
    fair: bool,
    blocking: bool,
    renew: bool,
    max_hold: Option<Duration>,
    min_hold: Option<Duration>,
    on_lost: OnLost,
    locker: Option<Locker>,
}

impl Call {
    /// A call whose key is rendered from a template, at once.
    pub fn new(template: &'static str, key: fmt::Arguments<'_>) -> Self {
        let key = render(key).map_err(|(so_far, flaw)| {
            LockError::invalid_key(&so_far, format!("{flaw}, in the key template `{template}`"))
        });
        Self::with(key)
    }

    /// A call whose key was made by the user.
    pub fn with_key(key: impl IntoLockKey) -> Self {
        Self::with(Ok(key.into_lock_key().as_str().to_owned()))
    }

    fn with(key: Result<String, LockError>) -> Self {
        Self {
            key,
            prefix: None,
            expire: None,
            wait: Wait::Never,
            fair: false,
            blocking: false,
            renew: false,
            max_hold: None,
            min_hold: None,
            on_lost: OnLost::Cancel,
            locker: None,
        }
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
        self.wait = Wait::Forever;
        self
    }

    /// The option `wait` with its limit.
    pub fn wait(mut self, limit: impl IntoWait) -> Self {
        self.wait = Wait::AtMost(limit.into_wait());
        self
    }

    /// The option `fair`.
    pub fn fair(mut self) -> Self {
        self.fair = true;
        self
    }

    /// The option `blocking`.
    pub fn blocking(mut self) -> Self {
        self.blocking = true;
        self
    }

    /// The option `renew`.
    pub fn renew(mut self) -> Self {
        self.renew = true;
        self
    }

    /// The option `max_hold`.
    pub fn max_hold(mut self, most: impl IntoHold) -> Self {
        self.max_hold = Some(most.into_hold());
        self
    }

    /// The option `min_hold`.
    pub fn min_hold(mut self, least: impl IntoHold) -> Self {
        self.min_hold = Some(least.into_hold());
        self
    }

    /// The option `on_lost = finish`.
    pub fn on_lost_finish(mut self) -> Self {
        self.on_lost = OnLost::Finish;
        self
    }

    /// The option `locker`.
    pub fn locker(mut self, locker: &Locker) -> Self {
        self.locker = Some(locker.clone());
        self
    }

    /// Acquires in one try, or waits; a busy lock is told at info level.
    async fn acquire(self) -> Result<LockGuard, LockError> {
        told(self.request()?.acquire().await)
    }

    fn acquire_blocking(self) -> Result<LockGuard, LockError> {
        let may_block = self.blocking;
        told(acquire_blocking(self.request()?, may_block))
    }

    fn request(self) -> Result<LockRequest, LockError> {
        let locker = match self.locker {
            Some(locker) => locker,
            None => default_locker()?,
        };
        let prefix = self.prefix.unwrap_or(locker.prefix());
        let key = self.key.map_err(|error| locker.reporting().redact(error))?;
        let mut request = locker.lock_with_prefix(prefix, &key).on_lost(self.on_lost);
        if let Some(expire) = self.expire {
            request = request.expire(expire);
        }
        request = match self.wait {
            Wait::Never => request.once(),
            Wait::AtMost(limit) => request.wait_at_most(limit),
            Wait::Forever => request,
        };
        if self.fair {
            request = request.fair();
        }
        if self.renew {
            request = request.renew();
        }
        if let Some(most) = self.max_hold {
            request = request.max_hold(most);
        }
        if let Some(least) = self.min_hold {
            request = request.min_hold(least);
        }
        Ok(request)
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
    unreachable!("stands behind `if false`")
}

/// Acquires, runs the body and releases on this thread, wherever that is; a body that has started cannot be stopped.
///
/// # Errors
/// As [`LockRequest::run`], and when there is no locker.
pub fn run_blocking<T>(call: Call, body: impl FnOnce(Lease) -> T) -> Result<T, LockError> {
    let guard = call.acquire_blocking()?;
    let lease = guard.lease();
    hold_blocking(guard, || body(lease))
}

/// The same; a body without a lease says what the call gives when another holder has the lock.
///
/// # Errors
/// As [`run_blocking`], but for the busy lock.
pub fn run_blocking_even_when_busy<T>(
    call: Call,
    body: impl FnOnce(Option<Lease>) -> T,
) -> Result<T, LockError> {
    match call.acquire_blocking() {
        Ok(guard) => {
            let lease = guard.lease();
            hold_blocking(guard, || body(Some(lease)))
        }
        Err(error) if error.is_busy() => Ok(body(None)),
        Err(error) => Err(error),
    }
}

/// A busy lock is told at info level; a limit that was reached, where that happened.
fn told(outcome: Result<LockGuard, LockError>) -> Result<LockGuard, LockError> {
    if let Err(error) = &outcome
        && error.kind() == LockErrorKind::Busy
    {
        telemetry::skipped(error);
    }
    outcome
}

/// Calls a closure; clippy would have it written in place.
pub fn start<G, T>(body: impl FnOnce(G) -> T, granted: G) -> T {
    body(granted)
}

/// What a sync function returns: looked at, not kept.
///
/// A future among these is found by its type, whatever that is called: where `T` is no future the
/// method of [`Returned`] itself is out of the question, and the one behind its `Deref` is taken.
#[derive(Debug)]
pub struct Returned<T>(PhantomData<fn() -> T>);

impl<T> Returned<T> {
    /// Takes the type of a value.
    #[must_use]
    pub fn new(_: &T) -> Self {
        Self(PhantomData)
    }
}

impl<T: Future> Returned<T> {
    /// Never compiles.
    pub fn is_no_future(&self)
    where
        T: RunsUnderTheLock,
    {
    }
}

impl<T> Deref for Returned<T> {
    type Target = Value;

    fn deref(&self) -> &Value {
        &Value
    }
}

/// What a sync function may return.
#[derive(Debug)]
pub struct Value;

impl Value {
    /// Always compiles.
    pub fn is_no_future(&self) {}
}

/// Implemented by nothing.
#[diagnostic::on_unimplemented(
    message = "the future would run after the lock is released",
    label = "a future",
    note = "write the function as `async fn`, or spell the type out as `Pin<Box<dyn Future<Output = ..>>>` or `BoxFuture<'_, ..>`"
)]
pub trait RunsUnderTheLock {}

/// What the option `key = expr` takes.
#[diagnostic::on_unimplemented(
    message = "a lock key must be a `LockKey`, got `{Self}`",
    label = "not a `LockKey`",
    note = "a text key is written as a literal: `key = \"order:{{id}}\"`, or `key(\"{{}}\", expr)` for a computed one"
)]
pub trait IntoLockKey {
    /// The key, before its prefix.
    fn into_lock_key(self) -> LockKey;
}

impl IntoLockKey for LockKey {
    fn into_lock_key(self) -> LockKey {
        self
    }
}

impl IntoLockKey for &LockKey {
    fn into_lock_key(self) -> LockKey {
        self.clone()
    }
}

/// What the option `expire = expr` takes.
#[diagnostic::on_unimplemented(
    message = "a lock's `expire` must be a duration, got `{Self}`",
    label = "not a duration",
    note = "write an integer literal (seconds), a text with a unit such as \"1500ms\", or a `std::time::Duration`"
)]
pub trait IntoExpire {
    /// The length of the lease.
    fn into_expire(self) -> Duration;
}

impl IntoExpire for Duration {
    fn into_expire(self) -> Duration {
        self
    }
}

/// What the option `wait = expr` takes.
#[diagnostic::on_unimplemented(
    message = "a lock's `wait` must be a duration, got `{Self}`",
    label = "not a duration",
    note = "write `wait` alone to wait without a limit; a limit is an integer literal (seconds), a text with a unit such as \"1500ms\", or a `std::time::Duration`"
)]
pub trait IntoWait {
    /// How long the call waits.
    fn into_wait(self) -> Duration;
}

impl IntoWait for Duration {
    fn into_wait(self) -> Duration {
        self
    }
}

/// What the options `max_hold = expr` and `min_hold = expr` take.
#[diagnostic::on_unimplemented(
    message = "a lock's `max_hold` or `min_hold` must be a duration, got `{Self}`",
    label = "not a duration",
    note = "write an integer literal (seconds), a text with a unit such as \"1500ms\", or a `std::time::Duration`"
)]
pub trait IntoHold {
    /// How long the lock is held.
    fn into_hold(self) -> Duration;
}

impl IntoHold for Duration {
    fn into_hold(self) -> Duration {
        self
    }
}

/// What a decorated function gives back when its body did not run, or was stopped.
#[diagnostic::on_unimplemented(
    message = "a function locked with `#[distributed_lock]` cannot return `{Self}`",
    label = "no value to return when the body cannot run, or is stopped",
    note = "return `()`, `Option<T>` or `Result<T, E>` with `E: From<LockError>`, or add `on_busy = <expression>` and `on_error = |err| <expression>`"
)]
pub trait Refused: Sized {
    /// The value; an error that has no place in it is told at error level.
    fn refused(error: LockError) -> Self;
}

impl Refused for () {
    fn refused(error: LockError) {
        tell(&error);
    }
}

impl<T> Refused for Option<T> {
    fn refused(error: LockError) -> Self {
        tell(&error);
        None
    }
}

impl<T, E: FromLockError> Refused for Result<T, E> {
    fn refused(error: LockError) -> Self {
        Err(E::from_lock_error(error))
    }
}

/// An error type that a busy lock can be told in.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be made from a `LockError`",
    label = "no error to return when the body cannot run, or is stopped",
    note = "implement `From<LockError> for {Self}`, or add `on_busy = Err(..)` and `on_error = |err| Err(..)`"
)]
pub trait FromLockError {
    /// The error.
    fn from_lock_error(error: LockError) -> Self;
}

#[diagnostic::do_not_recommend]
impl<E: From<LockError>> FromLockError for E {
    fn from_lock_error(error: LockError) -> Self {
        error.into()
    }
}

/// A busy lock was told already.
fn tell(error: &LockError) {
    if !error.is_busy() {
        telemetry::error_discarded(error);
    }
}

/// What `on_busy = skip` gives back.
#[diagnostic::on_unimplemented(
    message = "`on_busy = skip` cannot make a `{Self}`",
    label = "no value that means: skipped",
    note = "`skip` gives `()`, `None`, `Ok(())` or `Ok(None)`; for other types write `on_busy = <expression>`"
)]
pub trait Skip: Sized {
    /// The value.
    fn skip() -> Self;
}

impl Skip for () {
    fn skip() {}
}

impl<T> Skip for Option<T> {
    fn skip() -> Self {
        None
    }
}

impl<E> Skip for Result<(), E> {
    fn skip() -> Self {
        Ok(())
    }
}

impl<T, E> Skip for Result<Option<T>, E> {
    fn skip() -> Self {
        Ok(None)
    }
}
