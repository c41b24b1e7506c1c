use crate::core::types::error::{LockError, LockErrorKind};

pub(crate) fn invalid(flaw: &str) -> LockError {
    LockError::of_flaw(LockErrorKind::InvalidUrl, format!("in the URL, {flaw}"))
}

/// About an `@` behind the address: it may end a password.
pub(crate) const STRAY: &str = "an `@` is behind the address: write `/`, `?`, `#` and `@` of a password as `%2F`, \
                                `%3F`, `%23` and `%40`";
