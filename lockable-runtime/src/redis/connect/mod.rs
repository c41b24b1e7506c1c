pub(super) mod address;
#[cfg(feature = "tls-no-provider")]
mod certificates;
pub(super) mod client;
mod demotion;
pub(super) mod driven;
pub(crate) mod endpoint;
#[cfg(feature = "tls-no-provider")]
mod expiry;
pub(super) mod finder;
mod first_reply;
pub(super) mod hosts;
pub(super) mod login;
#[cfg(not(feature = "tls-no-provider"))]
mod no_certificates;
pub(crate) mod node;
pub(crate) mod opener;
pub(super) mod precedence;
pub(super) mod reports;
pub(super) mod role;
pub(super) mod secrets;
pub(crate) mod shards;
pub(super) mod stage;
mod tcp;
