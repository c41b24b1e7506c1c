//! Guards, and the body that runs only while the lease is held.

pub(crate) mod grant;
pub(crate) mod guard;
#[cfg(feature = "admin")]
mod pause;
pub(crate) mod reentry;
pub(crate) mod run;
pub(crate) mod set;
pub(crate) mod ticket;
