use std::sync::LazyLock;

use crate::core::types::key::LockKey;
use crate::core::types::slot::Slot;

/// The locks of all calls: three plain ones, one for `once`, the gate and the permits of a key.
pub(super) const KEYS: [&str; 8] = ["a", "b", "c", ONCE, "{p}#0", "{p}#1", "{p}#2", "{p}#3"];

pub(super) const ONCE: &str = "once";

pub(super) const PERMITS: &str = "{p}";
pub(super) const GATE: usize = 4;

/// How many hash slots they are in; all permits are in the last one.
pub(super) const SLOTS: usize = GATE + 1;

static LOCK_KEYS: LazyLock<[LockKey; KEYS.len()]> =
    LazyLock::new(|| KEYS.map(|key| LockKey::prefixed("", key).unwrap()));

static ALL_SLOTS: LazyLock<[Slot; SLOTS]> =
    LazyLock::new(|| std::array::from_fn(|at| Slot::of(&LOCK_KEYS[at])));

pub(super) fn lock_key(key: &str) -> LockKey {
    match position(key) {
        Some(at) => LOCK_KEYS[at].clone(),
        None => LockKey::prefixed("", key).unwrap(),
    }
}

pub(super) fn known(key: &LockKey) -> &'static str {
    KEYS[position(key.as_str()).unwrap()]
}

fn position(key: &str) -> Option<usize> {
    KEYS.into_iter().position(|known| known == key)
}

/// The key, or what it is a permit of.
pub(super) fn permits_key(key: &'static str) -> &'static str {
    key.split_once('#').map_or(key, |(permits_key, _)| permits_key)
}

/// Returns the number of the key's slot.
pub(super) fn slot_owner_of(key: &str) -> usize {
    position(key).unwrap_or(GATE).min(GATE)
}

/// Returns the number of a slot among those of all keys.
pub(super) fn slot_owner(slot: Slot) -> usize {
    ALL_SLOTS.iter().position(|known| *known == slot).unwrap()
}

pub(super) fn slot(slot_owner: usize) -> Slot {
    ALL_SLOTS[slot_owner]
}

pub(super) fn keys_in(slot_owner: usize) -> impl Iterator<Item = &'static str> {
    KEYS.into_iter().filter(move |key| slot_owner_of(key) == slot_owner)
}
