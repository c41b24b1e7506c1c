//! How to get to a server: its address, the Sentinels that name it, certificates, and credentials.

pub(super) mod address;
#[cfg(feature = "tls")]
mod certificates;
mod client;
mod demotion;
pub(super) mod driven;
mod elections;
mod epochs;
pub(super) mod hosts;
mod login;
#[cfg(not(feature = "tls"))]
mod no_certificates;
pub(super) mod node;
pub(super) mod opener;
pub(super) mod place;
pub(super) mod role;
pub(super) mod sentinels;
pub(super) mod shard_subscription;
pub(super) mod shards;
pub(super) mod subscription;
pub(super) mod votes;
pub(super) mod watch;
