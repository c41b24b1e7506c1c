//! Holding a lock: the guard, and the body that runs only while the lease is held.

pub(crate) mod guard;
pub(crate) mod reentry;
pub(crate) mod run;
