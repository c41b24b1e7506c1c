//! The texts of the scripts.

use crate::types::namespace::Channels;

/// A script, which servers are asked to cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    Release,
    Renew,
    Inspect,
    Seed,
    Enqueue,
    Leave,
    FreeAll,
    TakeOne,
    OneOf,
    Meet,
    FreeOne,
    /// Rarely run, so no connection has it cached.
    Transfer,
}

/// The scripts of these names, one behind the other.
macro_rules! text {
    ($($name:literal),+) => {
        concat!($(include_str!(concat!("../../../../scripts/", $name, ".lua"))),+)
    };
}

impl Script {
    pub(crate) const ALL: [Self; 11] = [
        Self::Release,
        Self::Renew,
        Self::Inspect,
        Self::Seed,
        Self::Enqueue,
        Self::Leave,
        Self::FreeAll,
        Self::TakeOne,
        Self::OneOf,
        Self::Meet,
        // The last, because it is not needed everywhere.
        Self::FreeOne,
    ];

    /// Those that are run where wake-ups are published so: no slot of a single server moves.
    pub(crate) fn needed(channels: Channels) -> impl Iterator<Item = Self> {
        let is_needed = move |script| channels == Channels::Sharded || script != Self::FreeOne;
        Self::ALL.into_iter().filter(move |script| is_needed(*script))
    }

    pub(crate) fn source(self, channels: Channels) -> &'static str {
        match (self, channels) {
            (Self::Release, Channels::Plain) => {
                text!("value", "free", "publish", "hand_off", "release")
            }
            (Self::Release, Channels::Sharded) => {
                text!("value", "free", "spublish", "hand_off", "release")
            }
            (Self::Enqueue, Channels::Plain) => text!("value", "publish", "hand_off", "enqueue"),
            (Self::Enqueue, Channels::Sharded) => text!("value", "spublish", "hand_off", "enqueue"),
            (Self::Leave, Channels::Plain) => text!("value", "publish", "hand_off", "leave"),
            (Self::Leave, Channels::Sharded) => text!("value", "spublish", "hand_off", "leave"),
            (Self::OneOf, Channels::Plain) => text!("value", "publish", "hand_off", "one_of"),
            (Self::OneOf, Channels::Sharded) => text!("value", "spublish", "hand_off", "one_of"),
            (Self::TakeOne, _) => text!("value", "take_one"),
            (Self::Renew, _) => text!("value", "renew"),
            (Self::Inspect, _) => text!("inspect"),
            (Self::Seed, _) => text!("seed"),
            (Self::FreeAll, _) => text!("value", "free_all"),
            (Self::Meet, _) => text!("meet"),
            (Self::FreeOne, _) => text!("value", "free_one"),
            (Self::Transfer, _) => text!("value", "transfer"),
        }
    }
}
