//! Which floors are there for certain, so that acquiring need not make them.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::Moment;
use crate::key::LockKey;
use crate::options::Ttl;

/// So many floors are remembered at most: 8 KiB for each connection.
const ROOMS: usize = 1024;

/// The floors that one connection made lately, as far as there is room for them.
///
/// It may err, because floors can be deleted and two keys can look alike. A floor that is not there
/// shows in the next grant of its key: the counter starts at 1 then, and is raised.
#[derive(Debug)]
pub(super) struct Floors {
    hasher: RandomState,
    /// In each the newest floor that belongs there: a half of its key's hash, and the second since boot
    /// at which it ends.
    rooms: Box<[AtomicU64]>,
}

impl Floors {
    pub(super) fn new() -> Self {
        let rooms = (0..ROOMS).map(|_| AtomicU64::new(0)).collect();
        Self { hasher: RandomState::new(), rooms }
    }

    pub(super) fn has(&self, key: &LockKey, now: Moment) -> bool {
        let (half, room) = self.room(key);
        let Some(room) = room else { return false };
        let known = room.load(Ordering::Relaxed);
        known >> 32 == half && seconds(now) < known & u64::from(u32::MAX)
    }

    /// A request that was sent then has made the floor of this key.
    pub(super) fn made(&self, key: &LockKey, ttl: Ttl, sent: Moment) {
        let (half, room) = self.room(key);
        let life = ttl.floor_life();
        // One in a hundred less, in case that the server's clock is the faster one.
        let end = seconds(sent.after(life.mul_f64(0.99))).min(u64::from(u32::MAX));
        if let Some(room) = room {
            room.store(half << 32 | end, Ordering::Relaxed);
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
    fn a_floor_is_known_for_as_long_as_it_lasts() {
        let (floors, key) = (Floors::new(), LockKey::from_static("order:7"));
        assert!(!floors.has(&key, at(100)));
        floors.made(&key, Ttl::DEFAULT, at(100));
        assert!(floors.has(&key, at(100)) && floors.has(&key, at(693)));
        assert!(
            !floors.has(&key, at(694)) && !floors.has(&LockKey::from_static("order:8"), at(100))
        );
    }

    #[test]
    fn the_newest_of_too_many_are_known() {
        let floors = Floors::new();
        let keys: Vec<_> =
            (0..10 * ROOMS).map(|n| LockKey::new(format!("order:{n}")).unwrap()).collect();
        for key in &keys {
            floors.made(key, Ttl::DEFAULT, at(1));
            assert!(floors.has(key, at(1)));
        }
        let known = keys.iter().filter(|key| floors.has(key, at(1))).count();
        assert!((ROOMS / 2..=ROOMS).contains(&known), "{known}");
    }
}
