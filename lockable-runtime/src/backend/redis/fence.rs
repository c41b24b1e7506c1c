//! Which fence counters this connection has seeded, so that acquiring need only count them up.
//!
//! See "When does a connection trust a fence counter?" in DESIGN.md.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::types::clock::Moment;
use crate::types::key::LockKey;
use crate::types::options::Ttl;

/// At most this many fence counters are remembered: 8 KiB for each connection.
const SLOTS: usize = 1024;

/// The fence counters that one connection seeded lately, as far as there are slots for them.
///
/// Those of other connections do not count: their server may have been another one, or have lost the
/// latest grants since. The memory may be wrong, because fence counters can be deleted and two keys can
/// look alike. Both show at the next request for the key: its count is below every seed of this
/// connection.
pub(super) struct FenceCounters {
    hasher: RandomState,
    /// In each the newest fence counter of the slot: a half of its key's hash, and the second since boot
    /// at which it ends.
    slots: Box<[AtomicU64]>,
    /// The lowest seed, which is at least the server's time.
    lowest_seed: AtomicU64,
}

impl FenceCounters {
    pub(super) fn new() -> Self {
        let slots = (0..SLOTS).map(|_| AtomicU64::new(0)).collect();
        Self { hasher: RandomState::new(), slots, lowest_seed: AtomicU64::new(u64::MAX) }
    }

    pub(super) fn has(&self, key: &LockKey, now: Moment) -> bool {
        let (half, slot) = self.slot(key);
        let Some(slot) = slot else { return false };
        let known = slot.load(Ordering::Acquire);
        known >> 32 == half && seconds(now) < known & u64::from(u32::MAX)
    }

    /// Whether a fence counter with this count is none of those that were seeded here.
    pub(super) fn is_below_seed(&self, count: u64) -> bool {
        count < self.lowest_seed.load(Ordering::Relaxed)
    }

    /// A request that was sent then has seeded the fence counter of this key with that token.
    pub(super) fn seeded(&self, key: &LockKey, ttl: Ttl, sent: Moment, token: u64) {
        self.lowest_seed.fetch_min(token, Ordering::Relaxed);
        let (half, slot) = self.slot(key);
        let life = ttl.fence_life();
        // One in a hundred less, in case that the server's clock is the faster one.
        let end = seconds(sent.after(life.mul_f64(0.99))).min(u64::from(u32::MAX));
        if let Some(slot) = slot {
            // A call that finds the fence counter here finds the lowest seed as well.
            slot.store(half << 32 | end, Ordering::Release);
        }
    }

    fn slot(&self, key: &LockKey) -> (u64, Option<&AtomicU64>) {
        let hash = self.hasher.hash_one(key);
        let place = usize::try_from(hash % SLOTS as u64).unwrap_or_default();
        (hash >> 32, self.slots.get(place))
    }
}

fn seconds(moment: Moment) -> u64 {
    moment.as_nanos() / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_fence_counter_is_known_while_it_lasts() {
        let (fences, key) = (FenceCounters::new(), LockKey::from_static("order:7"));
        assert!(!fences.has(&key, at(100)));
        fences.seeded(&key, Ttl::DEFAULT, at(100), 7);
        assert!(fences.has(&key, at(100)) && fences.has(&key, at(693)));
        assert!(
            !fences.has(&key, at(694)) && !fences.has(&LockKey::from_static("order:8"), at(100))
        );
    }

    #[test]
    fn a_count_below_every_seed_shows_a_lost_counter() {
        let (fences, key) = (FenceCounters::new(), LockKey::from_static("order:7"));
        for token in [1_000, 2_000, 900] {
            fences.seeded(&key, Ttl::DEFAULT, at(100), token);
        }
        assert!(fences.is_below_seed(899) && !fences.is_below_seed(900));
    }

    #[test]
    fn the_newest_of_too_many_are_known() {
        let fences = FenceCounters::new();
        let keys: Vec<_> =
            (0..10 * SLOTS).map(|n| LockKey::new(format!("order:{n}")).unwrap()).collect();
        for key in &keys {
            fences.seeded(key, Ttl::DEFAULT, at(1), 7);
            assert!(fences.has(key, at(1)));
        }
        let known = keys.iter().filter(|key| fences.has(key, at(1))).count();
        assert!((SLOTS / 2..=SLOTS).contains(&known), "{known}");
    }
}
