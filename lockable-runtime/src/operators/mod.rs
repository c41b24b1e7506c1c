//! What operators need: listings, queues, processes, messages to holders, and the report of a check.
//!
//! No call of a lock needs it. [`contract`] is what it needs of a store.

#[cfg(feature = "admin")]
pub mod admin;
#[cfg(not(feature = "admin"))]
#[expect(dead_code, unused_imports, unreachable_pub, reason = "the feature `admin` shows it")]
mod admin;
pub mod check;
pub(crate) mod contract;
mod locker;
mod memory;
#[cfg(feature = "redis")]
mod redis;
pub(crate) mod selection;
#[cfg(feature = "serde")]
mod serde;
