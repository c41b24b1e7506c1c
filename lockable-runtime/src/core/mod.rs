//! The lock: what a call does from the attribute to the release, on any store.
//!
//! It knows no store but the one in memory, and no operator. [`backend`] is the contract of a store.

pub(crate) mod acquire;
pub(crate) mod attribute;
pub(crate) mod backend;
pub(crate) mod background;
pub mod fencing;
pub(crate) mod hold;
pub(crate) mod holder;
pub(crate) mod labels;
pub(crate) mod lease;
pub(crate) mod local_permits;
pub(crate) mod locker;
pub(crate) mod memory;
pub(crate) mod naming;
pub(crate) mod process;
pub(crate) mod releaser;
pub(crate) mod request_id;
#[cfg(feature = "serde")]
mod serde;
pub(crate) mod settings;
pub mod telemetry;
pub(crate) mod text;
pub(crate) mod types;
pub(crate) mod waiters;
pub(crate) mod worker;
