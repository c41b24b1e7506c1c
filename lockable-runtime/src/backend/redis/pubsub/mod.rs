//! Waiting: the subscription on which grants arrive, and what operators send.

use self::grants::PlainGrants;
use self::shard_grants::ShardGrants;
use crate::backend::Fault;
use crate::backend::redis::connect::opener::Opener;
use crate::types::slot::Slot;
use crate::types::token::Origin;

pub(super) mod grants;
pub(super) mod kept;
pub(super) mod revocations;
mod shard_channels;
mod shard_grants;
pub(super) mod shard_subscription;
pub(super) mod subscription;

/// The subscription to the grants of one server.
pub(super) enum Grants {
    /// One channel has those of all slots.
    Plain(Box<PlainGrants>),
    /// Each slot has a channel of its own.
    Sharded(ShardGrants),
}

impl Grants {
    pub(super) fn of_all_slots(opener: Opener) -> Self {
        Self::Plain(Box::new(PlainGrants::new(opener)))
    }

    pub(super) fn by_slot(opener: Opener) -> Self {
        Self::Sharded(ShardGrants::new(opener))
    }

    /// Answers once the channel of all slots is confirmed, where there is one.
    pub(super) async fn listen(&self, origin: Origin) -> Result<(), Fault> {
        match self {
            Self::Plain(grants) => grants.listen(origin).await,
            Self::Sharded(_) => Ok(()),
        }
    }

    /// Answers once the channel of this slot is confirmed, where it has one.
    pub(super) async fn listen_for(&self, slot: Slot, origin: Origin) -> Result<(), Fault> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Sharded(grants) => Box::pin(grants.listen(slot, origin)).await,
        }
    }

    /// The same without waiting.
    pub(super) fn start_listening(&self, slot: Slot, origin: Origin) {
        if let Self::Sharded(grants) = self {
            grants.start_listening(slot, origin);
        }
    }

    /// The server has no slots any more.
    pub(super) fn abandon(&self) {
        if let Self::Sharded(grants) = self {
            grants.abandon();
        }
    }
}
