//! How a server was found, and what that says of it.

use super::group::Group;
use crate::backend::redis::connect::shards::Shard;

/// How the server was found, and so what is expected of it.
pub(super) enum Standing<'a> {
    /// It is where the URL says.
    Alone,
    /// Sentinels name it.
    Elected(&'a Group),
    /// It is the master of these slots.
    Master(&'a Shard),
}

impl Standing<'_> {
    /// How many replicas it has had, as far as others say.
    pub(super) fn replicas(&self) -> Option<u64> {
        match self {
            Self::Alone => None,
            Self::Elected(group) => group.replicas(),
            Self::Master(shard) => u64::try_from(shard.replicas.len()).ok(),
        }
    }

    /// Whether another server is to take its place when it fails.
    pub(super) fn has_failover(&self) -> bool {
        match self {
            Self::Alone => false,
            Self::Elected(_) | Self::Master(_) => true,
        }
    }

    /// The slots that it is the master of, in a cluster.
    pub(super) fn shard(&self) -> Option<&Shard> {
        match self {
            Self::Alone | Self::Elected(_) => None,
            Self::Master(shard) => Some(shard),
        }
    }
}
