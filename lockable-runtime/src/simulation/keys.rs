//! The locks that all calls are about.

use crate::types::key::LockKey;

/// The locks that all calls are about: three plain ones, one that may be done, the gate and the permits of a key.
pub(super) const KEYS: [&str; 8] = ["a", "b", "c", ONCE, "{p}#0", "{p}#1", "{p}#2", "{p}#3"];

/// Whose runs are done once in a while.
pub(super) const ONCE: &str = "once";

/// What the permits are of, and where the gate of all is among the keys.
pub(super) const PERMITS: &str = "{p}";
pub(super) const GATE: usize = 4;

pub(super) fn lock_key(key: &str) -> LockKey {
    LockKey::prefixed("", key).unwrap()
}

/// The same name as one that lives for ever.
pub(super) fn known(key: &LockKey) -> &'static str {
    KEYS.into_iter().find(|known| *known == key.as_str()).unwrap()
}

/// The key, or what it is a permit of.
pub(super) fn family(key: &'static str) -> &'static str {
    key.split_once('#').map_or(key, |(family, _)| family)
}
