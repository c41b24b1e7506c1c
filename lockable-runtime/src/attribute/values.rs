//! What an option takes that is written as an expression.

use std::time::Duration;

use crate::types::key::LockKey;

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

/// What the options `max_hold = expr`, `min_hold = expr` and `once = expr` take.
#[diagnostic::on_unimplemented(
    message = "a lock's `max_hold`, `min_hold` or `once` must be a duration, got `{Self}`",
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
