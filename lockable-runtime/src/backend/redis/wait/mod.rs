//! Waiting: the subscription on which grants arrive.

pub(super) mod grants;
mod shard_channels;
pub(super) mod shard_grants;
