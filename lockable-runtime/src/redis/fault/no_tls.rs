//! There is no TLS without the feature `tls-no-provider`.

use ::redis::RedisError;

use crate::core::types::error::LockErrorKind;
use crate::core::types::remedy::Advice;

pub(super) fn verdict(_: &RedisError) -> Option<(LockErrorKind, Advice)> {
    None
}
