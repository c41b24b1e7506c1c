//! What a decorated function returns when its body did not run, or was stopped.

use crate::core::telemetry;
use crate::core::types::error::LockError;

/// The value when a body did not run, or was stopped.
#[diagnostic::on_unimplemented(
    message = "a function locked with `#[distributed_lock]` cannot return `{Self}`",
    label = "no value to return when the body cannot run, or is stopped",
    note = "return `()`, `Option<T>` or `Result<T, E>` with `E: From<LockError>`, or add `on_busy = <expression>` and `on_error = |err| <expression>`"
)]
pub trait Refused: Sized {
    /// An error that it cannot carry is logged.
    fn refused(error: LockError) -> Self;
}

impl Refused for () {
    fn refused(error: LockError) {
        log_discarded(&error);
    }
}

impl<T> Refused for Option<T> {
    fn refused(error: LockError) -> Self {
        log_discarded(&error);
        None
    }
}

impl<T, E: FromLockError> Refused for Result<T, E> {
    fn refused(error: LockError) -> Self {
        Err(E::from_lock_error(error))
    }
}

/// For a function with `on_busy`.
#[diagnostic::on_unimplemented(
    message = "`on_error` is missing: `{Self}` has no value for a call that failed",
    label = "no value to return when the body cannot run, or is stopped",
    note = "add `on_error = |err| <expression>`: `on_busy` is for a busy lock only",
    note = "`()`, `Option<T>` and `Result<T, E>` with `E: From<LockError>` need neither of them"
)]
pub trait RefusedBesideOnBusy: Sized {
    /// An error that it cannot carry is logged.
    fn refused(error: LockError) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Refused> RefusedBesideOnBusy for T {
    fn refused(error: LockError) -> Self {
        Refused::refused(error)
    }
}

/// For a function with `on_error`.
#[diagnostic::on_unimplemented(
    message = "`on_busy` is missing: `{Self}` has no value for a busy lock",
    label = "no value to return when another holder has the lock",
    note = "add `on_busy = <expression>`: `on_error` is for failures only",
    note = "`()`, `Option<T>` and `Result<T, E>` with `E: From<LockError>` need neither of them"
)]
pub trait RefusedBesideOnError: Sized {
    /// The busy lock was logged.
    fn refused(error: LockError) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Refused> RefusedBesideOnError for T {
    fn refused(error: LockError) -> Self {
        Refused::refused(error)
    }
}

/// An error type that can carry a lock's error.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be made from a `LockError`",
    label = "no error to return when the body cannot run, or is stopped",
    note = "if `{Self}` is a type of yours, implement `From<LockError>` for it",
    note = "if it is of another crate, return an error of yours that can be made from both, or add `on_busy = Err(..)` and `on_error = |err| Err(..)`"
)]
pub trait FromLockError {
    /// Converts.
    fn from_lock_error(error: LockError) -> Self;
}

#[diagnostic::do_not_recommend]
impl<E: From<LockError>> FromLockError for E {
    fn from_lock_error(error: LockError) -> Self {
        error.into()
    }
}

fn log_discarded(error: &LockError) {
    if error.is_busy() {
        telemetry::skipped(error);
    } else {
        telemetry::error_discarded(error);
    }
}

/// The value of `on_busy = skip`.
#[diagnostic::on_unimplemented(
    message = "`on_busy = skip` cannot make a `{Self}`",
    label = "no value that means: skipped",
    note = "`skip` gives `()`, `None`, `Ok(())` or `Ok(None)`; for other types write `on_busy = <expression>`"
)]
pub trait Skip: Sized {
    /// The value.
    fn skip() -> Self;

    /// Logs the busy lock.
    #[must_use]
    fn skipped(error: &LockError) -> Self {
        telemetry::skipped(error);
        Self::skip()
    }
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
