//! Values of options that are expressions.

use std::time::Duration;

use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;

/// For `key = expr`.
#[diagnostic::on_unimplemented(
    message = "a lock key must be a `LockKey`, got `{Self}`",
    label = "not a `LockKey`",
    note = "a text key is written as a literal: `key = \"order:{{id}}\"`, or `key(\"{{}}\", expr)` for a computed one"
)]
pub trait IntoLockKey {
    /// The key, before its prefix.
    ///
    /// # Errors
    /// That of a key which could not be made.
    fn into_lock_key(self) -> Result<LockKey, LockError>;
}

impl IntoLockKey for LockKey {
    fn into_lock_key(self) -> Result<LockKey, LockError> {
        Ok(self)
    }
}

impl IntoLockKey for &LockKey {
    fn into_lock_key(self) -> Result<LockKey, LockError> {
        Ok(self.clone())
    }
}

/// Of `lock_key!`.
impl IntoLockKey for Result<LockKey, LockError> {
    fn into_lock_key(self) -> Result<LockKey, LockError> {
        self
    }
}

/// For `keys = expr`.
#[diagnostic::on_unimplemented(
    message = "`keys` takes several `LockKey`s, got `{Self}`",
    label = "no `Vec`, array or slice of `LockKey`s",
    note = "templates are written in brackets: `keys = [\"account:{{from}}\", \"account:{{to}}\"]`",
    note = "each computed key is made by `lock_key!(\"sku:{{}}\", item.sku)`; collect them into a `Vec`"
)]
pub trait IntoLockKeys {
    /// The keys, before their prefix.
    ///
    /// # Errors
    /// That of the first key which could not be made.
    fn into_lock_keys(self) -> Result<Vec<LockKey>, LockError>;
}

impl<K: IntoLockKey> IntoLockKeys for Vec<K> {
    fn into_lock_keys(self) -> Result<Vec<LockKey>, LockError> {
        self.into_iter().map(IntoLockKey::into_lock_key).collect()
    }
}

impl<K: IntoLockKey, const N: usize> IntoLockKeys for [K; N] {
    fn into_lock_keys(self) -> Result<Vec<LockKey>, LockError> {
        self.into_iter().map(IntoLockKey::into_lock_key).collect()
    }
}

impl IntoLockKeys for &[LockKey] {
    fn into_lock_keys(self) -> Result<Vec<LockKey>, LockError> {
        Ok(self.to_vec())
    }
}

impl IntoLockKeys for &Vec<LockKey> {
    fn into_lock_keys(self) -> Result<Vec<LockKey>, LockError> {
        Ok(self.clone())
    }
}

impl<const N: usize> IntoLockKeys for &[LockKey; N] {
    fn into_lock_keys(self) -> Result<Vec<LockKey>, LockError> {
        Ok(self.to_vec())
    }
}

/// Of collected `lock_key!`s.
impl<K: IntoLockKeys> IntoLockKeys for Result<K, LockError> {
    fn into_lock_keys(self) -> Result<Vec<LockKey>, LockError> {
        self.and_then(IntoLockKeys::into_lock_keys)
    }
}

/// For `expire = expr`.
#[diagnostic::on_unimplemented(
    message = "a lock's `expire` must be a duration, got `{Self}`",
    label = "not a duration",
    note = "write an integer literal (seconds), a text with a unit such as \"1500ms\", or a `std::time::Duration`"
)]
pub trait IntoExpire {
    /// Converts.
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

/// For `max_hold`, `min_hold` and `once`.
#[diagnostic::on_unimplemented(
    message = "a lock's `max_hold`, `min_hold` or `once` must be a duration, got `{Self}`",
    label = "not a duration",
    note = "write an integer literal (seconds), a text with a unit such as \"1500ms\", or a `std::time::Duration`"
)]
pub trait IntoHold {
    /// Converts.
    fn into_hold(self) -> Duration;
}

impl IntoHold for Duration {
    fn into_hold(self) -> Duration {
        self
    }
}

/// For `permits`.
#[diagnostic::on_unimplemented(
    message = "a number of permits must be an integer, got `{Self}`",
    label = "not a number of permits",
    note = "write an integer literal, or a constant of the type `u8`, `u32` or `usize`"
)]
pub trait IntoPermits {
    /// An impossible number is refused when the lock is acquired.
    fn into_permits(self) -> u32;
}

impl IntoPermits for u8 {
    fn into_permits(self) -> u32 {
        self.into()
    }
}

impl IntoPermits for u32 {
    fn into_permits(self) -> u32 {
        self
    }
}

impl IntoPermits for usize {
    fn into_permits(self) -> u32 {
        u32::try_from(self).unwrap_or(u32::MAX)
    }
}
