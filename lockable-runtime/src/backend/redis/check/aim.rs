//! What a check looks for, and what is expected of a server by how it was found.

use crate::backend::redis::connect::shards::Shard;
use crate::check::Role;

/// What is to be done with which locks.
#[derive(Clone)]
pub(super) struct Aim {
    pub(super) prefix: String,
    pub(super) role: Role,
}

/// How a server was found.
#[derive(Clone, Copy)]
pub(super) struct Standing<'a> {
    /// Whether another server is to take its place when it fails.
    pub(super) has_failover: bool,
    /// The slots that it is the master of, in a cluster, and its replicas.
    pub(super) shard: Option<&'a Shard>,
}
