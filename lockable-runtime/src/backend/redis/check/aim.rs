//! What a check looks for.

use crate::check::Role;

/// What is to be done with which locks.
#[derive(Clone)]
pub(super) struct Aim {
    pub(super) prefix: String,
    pub(super) role: Role,
}
