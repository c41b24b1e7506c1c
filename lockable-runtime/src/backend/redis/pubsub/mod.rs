//! Waiting: the subscription on which wake-ups arrive, and what operators send.

use self::shard_wake_ups::ShardWakeUps;
use self::wake_ups::PlainWakeUps;
use crate::backend::Fault;
use crate::backend::redis::connect::opener::Opener;
use crate::types::slot::Slot;
use crate::types::token::Origin;

pub(super) mod kept;
pub(super) mod revocations;
mod shard_channels;
pub(super) mod shard_subscription;
mod shard_wake_ups;
pub(super) mod subscription;
pub(super) mod wake_ups;

/// The subscription to the wake-ups of one server.
pub(super) enum WakeUps {
    /// One channel has those of all slots.
    Plain(Box<PlainWakeUps>),
    /// Each slot has a channel of its own.
    Sharded(ShardWakeUps),
}

impl WakeUps {
    pub(super) fn of_all_slots(opener: Opener) -> Self {
        Self::Plain(Box::new(PlainWakeUps::new(opener)))
    }

    pub(super) fn by_slot(opener: Opener) -> Self {
        Self::Sharded(ShardWakeUps::new(opener))
    }

    /// Answers once the channel of all slots is confirmed, where there is one.
    pub(super) async fn listen(&self, origin: Origin) -> Result<(), Fault> {
        match self {
            Self::Plain(wake_ups) => wake_ups.listen(origin).await,
            Self::Sharded(_) => Ok(()),
        }
    }

    /// Answers once the channel of this slot is confirmed, where it has one.
    pub(super) async fn listen_for(&self, slot: Slot, origin: Origin) -> Result<(), Fault> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Sharded(wake_ups) => Box::pin(wake_ups.listen(slot, origin)).await,
        }
    }

    /// The same without waiting.
    pub(super) fn start_listening(&self, slot: Slot, origin: Origin) {
        if let Self::Sharded(wake_ups) = self {
            wake_ups.start_listening(slot, origin);
        }
    }

    /// The server has no slots any more.
    pub(super) fn abandon(&self) {
        if let Self::Sharded(wake_ups) = self {
            wake_ups.abandon();
        }
    }
}
