//! The texts of the scripts, and their names in a server's cache.
//!
//! See "What does a handshake ask for (`SCRIPT EXISTS`, `CONFIG GET`, `INFO`)?" in DESIGN.md.

use std::sync::LazyLock;

use crate::core::naming::namespace::Channels;

macro_rules! text {
    ($($name:literal),+ $(,)?) => {
        concat!($(include_str!(concat!("../../../scripts/", $name, ".lua"))),+)
    };
}

/// Each script, the most frequent first, with its files; the script that publishes is between both lists.
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
    Seed: ["seed"],
    Enqueue: ["value"] publish ["hand_off", "enqueue"],
    Leave: ["value"] publish ["hand_off", "leave"],
    Mark: ["mark"],
    FreeAll: ["value", "free_all"],
    TakeOne: ["value", "take_one"],
    OneOf: ["value"] publish ["hand_off", "one_of"],
    Inspect: ["inspect"],
    FreeOne: ["value", "free_one"],
    Transfer: ["value", "transfer"],
}

impl Script {
    pub(crate) fn name(self, channels: Channels) -> &'static str {
        let names = match channels {
            Channels::Plain => &PLAIN,
            Channels::Sharded => &SHARDED,
        };
        names.get(self as usize).map_or("", |name| name.get_hash())
    }
}

static PLAIN: LazyLock<Vec<::redis::Script>> = LazyLock::new(|| all(Channels::Plain));

static SHARDED: LazyLock<Vec<::redis::Script>> = LazyLock::new(|| all(Channels::Sharded));

fn all(channels: Channels) -> Vec<::redis::Script> {
    Script::ALL.iter().map(|script| ::redis::Script::new(script.source(channels))).collect()
}
