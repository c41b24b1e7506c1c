//! Which fence counters this connection has raised to the time, so that acquiring need only count them up.
//!
//! See "When does a connection trust a fence counter?" in DESIGN.md.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::types::clock::Moment;
use crate::types::key::LockKey;
use crate::types::options::Ttl;

/// So many fence counters are remembered at most: 8 KiB for each connection.
const ROOMS: usize = 1024;

/// The fence counters that one connection raised lately, as far as there is room for them.
///
/// Those of other connections do not count: their server may have been another one, or have lost the
/// latest grants since. It may err, because fence counters can be deleted and two keys can look alike. Both show
/// at the next request for the key: its count is lower than any fence counter was raised to here.
pub(super) struct FenceCounters {
    hasher: RandomState,
    /// In each the newest fence counter that belongs there: a half of its key's hash, and the second since boot
    /// at which it ends.
    rooms: Box<[AtomicU64]>,
    /// The lowest token of those that fence counters were raised to, which are at least the server's time.
    lowest: AtomicU64,
}

impl FenceCounters {
    pub(super) fn new() -> Self {
        let rooms = (0..ROOMS).map(|_| AtomicU64::new(0)).collect();
        Self { hasher: RandomState::new(), rooms, lowest: AtomicU64::new(u64::MAX) }
    }

    pub(super) fn has(&self, key: &LockKey, now: Moment) -> bool {
        let (half, room) = self.room(key);
        let Some(room) = room else { return false };
        let known = room.load(Ordering::Acquire);
        known >> 32 == half && seconds(now) < known & u64::from(u32::MAX)
    }

    /// Whether a fence counter that counts so far is none of these.
    pub(super) fn lacks(&self, count: u64) -> bool {
        count < self.lowest.load(Ordering::Relaxed)
    }

    /// A request that was sent then has raised the fence counter of this key to that token.
    pub(super) fn raised(&self, key: &LockKey, ttl: Ttl, sent: Moment, token: u64) {
        self.lowest.fetch_min(token, Ordering::Relaxed);
        let (half, room) = self.room(key);
        let life = ttl.fence_life();
        // One in a hundred less, in case that the server's clock is the faster one.
        let end = seconds(sent.after(life.mul_f64(0.99))).min(u64::from(u32::MAX));
        if let Some(room) = room {
            // Whoever finds the fence counter here finds the lowest token as well.
            room.store(half << 32 | end, Ordering::Release);
        }
    }

    fn room(&self, key: &LockKey) -> (u64, Option<&AtomicU64>) {
        let hash = self.hasher.hash_one(key);
        let place = usize::try_from(hash % ROOMS as u64).unwrap_or_default();
        (hash >> 32, self.rooms.get(place))
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
    fn a_fence_is_known_for_as_long_as_it_lasts() {
        let (fences, key) = (FenceCounters::new(), LockKey::from_static("order:7"));
        assert!(!fences.has(&key, at(100)));
        fences.raised(&key, Ttl::DEFAULT, at(100), 7);
        assert!(fences.has(&key, at(100)) && fences.has(&key, at(693)));
        assert!(
            !fences.has(&key, at(694)) && !fences.has(&LockKey::from_static("order:8"), at(100))
        );
    }

    #[test]
    fn a_count_below_all_that_were_raised_shows_that_a_fence_is_lost() {
        let (fences, key) = (FenceCounters::new(), LockKey::from_static("order:7"));
        for token in [1_000, 2_000, 900] {
            fences.raised(&key, Ttl::DEFAULT, at(100), token);
        }
        assert!(fences.lacks(899) && !fences.lacks(900));
    }

    #[test]
    fn the_newest_of_too_many_are_known() {
        let fences = FenceCounters::new();
        let keys: Vec<_> =
            (0..10 * ROOMS).map(|n| LockKey::new(format!("order:{n}")).unwrap()).collect();
        for key in &keys {
            fences.raised(key, Ttl::DEFAULT, at(1), 7);
            assert!(fences.has(key, at(1)));
        }
        let known = keys.iter().filter(|key| fences.has(key, at(1))).count();
        assert!((ROOMS / 2..=ROOMS).contains(&known), "{known}");
    }
}
