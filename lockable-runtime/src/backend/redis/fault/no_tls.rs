//! There is no TLS without the feature `tls-no-provider`.

use ::redis::RedisError;

use crate::types::error::LockErrorKind;

pub(super) fn verdict(_: &RedisError) -> Option<(LockErrorKind, &'static str)> {
    None
}
