//! The names of what a locker has in a store beside its locks, and of its connections.

pub(crate) mod client_name;
pub(crate) mod namespace;
