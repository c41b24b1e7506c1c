//! Calls that are given up while they are under way leave no lock behind.

pub(crate) mod late_requests;
pub(crate) mod polls;
