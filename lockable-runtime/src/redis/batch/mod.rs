pub(super) mod acquire;
pub(super) mod confirmations;
pub(super) mod releases;
pub(super) mod renewals;
pub(crate) mod requests;
