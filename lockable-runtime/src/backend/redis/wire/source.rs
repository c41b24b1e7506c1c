//! The texts of the scripts.

use crate::types::namespace::Channels;

/// The scripts of these names, one behind the other.
macro_rules! text {
    ($($name:literal),+ $(,)?) => {
        concat!($(include_str!(concat!("../../../../scripts/", $name, ".lua"))),+)
    };
}

/// Each script, with the files that it consists of; between both lists is the one that publishes.
macro_rules! scripts {
    ($($script:ident: [$($front:literal),+] $(publish [$($behind:literal),+])?,)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Script {
            $($script,)+
        }

        impl Script {
            pub(crate) const ALL: &[Self] = &[$(Self::$script),+];

            pub(crate) fn source(self, channels: Channels) -> &'static str {
                match (self, channels) {$(
                    (Self::$script, Channels::Plain) => {
                        text!($($front,)+ $("publish", $($behind),+)?)
                    }
                    (Self::$script, Channels::Sharded) => {
                        text!($($front,)+ $("spublish", $($behind),+)?)
                    }
                )+}
            }
        }
    };
}

scripts! {
    Release: ["free", "value"] publish ["hand_off", "release"],
    Renew: ["value", "renew"],
    Inspect: ["inspect"],
    Seed: ["seed"],
    Enqueue: ["value"] publish ["hand_off", "enqueue"],
    Leave: ["value"] publish ["hand_off", "leave"],
    FreeAll: ["value", "free_all"],
    TakeOne: ["value", "take_one"],
    OneOf: ["value"] publish ["hand_off", "one_of"],
    Meet: ["meet"],
    FreeOne: ["value", "free_one"],
    Transfer: ["value", "transfer"],
}

impl Script {
    /// Those that servers are asked to cache: but for those that are rarely run, and no slot of a single server moves.
    pub(crate) fn needed(channels: Channels) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |script| script.is_needed(channels))
    }

    pub(crate) fn is_needed(self, channels: Channels) -> bool {
        match self {
            Self::Transfer => false,
            Self::FreeOne => channels == Channels::Sharded,
            _ => true,
        }
    }
}
