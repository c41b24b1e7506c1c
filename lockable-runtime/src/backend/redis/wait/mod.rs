//! Waiting: the subscription on which grants arrive, and what operators send.

pub(super) mod grants;
pub(super) mod revocations;
mod shard_channels;
pub(super) mod shard_grants;
