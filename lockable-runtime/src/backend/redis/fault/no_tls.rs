//! There is no TLS without the feature `tls-no-provider`.

use ::redis::RedisError;

use crate::types::error::LockErrorKind;
use crate::types::remedy::Advice;

pub(super) fn verdict(_: &RedisError) -> Option<(LockErrorKind, Advice)> {
    None
}
