//! What the names begin with of all that a locker has in Redis beside its locks.
//!
//! See "What is the namespace, and which names begin with it?" in DESIGN.md.

use std::fmt::{self, Display};
use std::sync::Arc;

use crate::core::types::error::{LockError, LockErrorKind};
use crate::core::types::key::LockKey;
use crate::core::types::permit::member;
use crate::core::types::{id::ProcessId, owner::Origin, permit::PermitsKey, slot::Slot, tag::tag};

/// The beginning of the names of companion keys, of the channels of wake-ups, and of the keys of probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Namespace(Arc<str>);

/// So that a name in it is far shorter than a key may be.
const MAX_BYTES: usize = 256;

impl Namespace {
    /// # Errors
    /// [`InvalidOption`](crate::LockErrorKind::InvalidOption) when no name can begin with the text.
    pub(crate) fn new(text: &str) -> Result<Self, LockError> {
        match flaw(text) {
            None => Ok(Self(text.into())),
            Some(flaw) => Err(LockError::of_flaw(LockErrorKind::InvalidOption, flaw)),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The whole name of a lock: `prefix`, then `text`.
    ///
    /// # Errors
    /// [`InvalidKey`](crate::LockErrorKind::InvalidKey) as of [`held`](Self::held), and for the name of a permit, whose
    /// lock would have the queue of all permits.
    pub(crate) fn key(&self, prefix: &str, text: &str) -> Result<LockKey, LockError> {
        let key = self.held(prefix, text)?;
        if member(key.as_str()).is_none() {
            return Ok(key);
        }
        let flaw = "the key is the name of a permit, a hash tag with `#` and a number behind it; write `permits` for \
                    one of those, or another character than `#`";
        Err(LockError::invalid_key(key.as_str(), flaw))
    }

    /// As [`key`](Self::key), for a lock that is only looked at: also accepts the name of a permit.
    ///
    /// # Errors
    /// [`InvalidKey`](crate::LockErrorKind::InvalidKey) when the text cannot be a key, or is the name of a companion:
    /// the lock would be taken for a queue or a counter of others.
    pub(crate) fn held(&self, prefix: &str, text: &str) -> Result<LockKey, LockError> {
        let key = LockKey::prefixed(prefix, text)?;
        if !self.is_companion(key.as_str()) {
            return Ok(key);
        }
        let flaw = "the key is a name of what lockable has beside its locks; choose another key, or another `namespace`";
        Err(LockError::invalid_key(key.as_str(), flaw))
    }

    pub(crate) fn is_companion(&self, key: &str) -> bool {
        let forms = [":fence:{", ":queue:{", ":queue:#:", ":queue::", ":probe:"];
        let rest = key.strip_prefix(&*self.0);
        rest.is_some_and(|rest| forms.iter().any(|form| rest.starts_with(form)))
    }
}

impl Namespace {
    /// A namespace within this one that no one else uses, for a probe that leaves nothing behind.
    pub(crate) fn of_probe(&self, origin: Origin) -> Self {
        Self(format!("{self}:probe:{origin}").into())
    }

    /// The name of the fence counter that the locks of a slot share.
    ///
    /// See "Where do fencing tokens come from, and what seeds a fence counter (`TIME`)?" in DESIGN.md.
    pub(crate) fn fence(&self, slot: Slot) -> Companion<'_> {
        Companion([&self.0, ":fence:{", tag(slot), "}"])
    }

    /// The name of the queue of a lock, on the lock's slot: by its hash tag, or else with the whole key as one. All
    /// permits of a key have one queue. The names of the kinds differ in the last character before the key.
    pub(crate) fn queue<'a>(&'a self, key: &'a LockKey) -> Companion<'a> {
        let key = key.as_str();
        match member(key) {
            Some((permits_key, 1..)) => Companion([&self.0, ":queue:#:", permits_key, ""]),
            _ if key.contains('{') => Companion([&self.0, ":queue::", key, ""]),
            _ => Companion([&self.0, ":queue:{", key, "}"]),
        }
    }

    pub(crate) fn queue_of<'a>(&'a self, permits_key: &'a PermitsKey) -> Companion<'a> {
        Companion([&self.0, ":queue:#:", permits_key.key().as_str(), ""])
    }

    /// Where the wake-ups of that origin are published; the scripts write the same name.
    pub(crate) fn channel(&self, origin: Origin) -> String {
        format!("{self}:grant:{origin}")
    }

    /// Where operators send messages to the holders of that process.
    pub(crate) fn revocations(&self, process: ProcessId) -> String {
        format!("{self}:revoke:{process}")
    }

    /// Where the wake-ups of that origin are published for the locks of a slot, on that slot.
    pub(crate) fn shard_channel(&self, origin: Origin, slot: Slot) -> String {
        format!("{self}:grant:{origin}:{{{}}}", tag(slot))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channels {
    /// Each process has one, on the whole server.
    Plain,
    /// Each process has one on each slot of a cluster that it waits for locks of.
    Sharded,
}

impl Channels {
    pub(crate) fn of_wake_ups(self, namespace: &Namespace, origin: Origin, slot: Slot) -> String {
        match self {
            Self::Plain => namespace.channel(origin),
            Self::Sharded => namespace.shard_channel(origin, slot),
        }
    }

    pub(crate) fn subscribe(self) -> &'static str {
        match self {
            Self::Plain => "subscribe",
            Self::Sharded => "ssubscribe",
        }
    }

    pub(crate) fn count(self) -> &'static str {
        match self {
            Self::Plain => "NUMSUB",
            Self::Sharded => "SHARDNUMSUB",
        }
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self("lockable".into())
    }
}

impl Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a key that belongs to a lock, in parts: commands are written without joining them first.
#[derive(Clone, Copy)]
pub(crate) struct Companion<'a>([&'a str; 4]);

impl<'a> Companion<'a> {
    pub(crate) fn parts(self) -> [&'a str; 4] {
        self.0
    }
}

impl Display for Companion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().into_iter().try_for_each(|part| f.write_str(part))
    }
}

fn flaw(text: &str) -> Option<&'static str> {
    let is_forbidden = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '{' | '}');
    if text.is_empty() {
        return Some(
            "`namespace` is empty; leave it out for `lockable`, or write one like `shop:lockable`",
        );
    }
    if text.len() > MAX_BYTES {
        return Some(
            "`namespace` is longer than 256 bytes; write a short one like `shop:lockable`",
        );
    }
    text.contains(is_forbidden).then_some(
        "`namespace` has white space, a control character or a brace; write one like `shop:lockable`",
    )
}

#[cfg(test)]
mod tests;
