//! The lanes of a process: as many calls as a key has permits ask and hold at a time, and the others wait for those
//! without a request.
//!
//! See "How are `permits` made of plain locks?" in DESIGN.md.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::types::key::LockKey;
use crate::types::permit::Family;

/// The lanes of each key that calls of this process want permits of.
#[derive(Default)]
pub(crate) struct AllLanes(Mutex<HashMap<LockKey, Weak<Lanes>>>);

/// The lanes of one key. Calls with unlike numbers of permits share them.
pub(crate) struct Lanes {
    free: Mutex<Free>,
    /// Calls that wait have it in the order in which they came.
    entrance: Arc<Semaphore>,
}

#[derive(Default)]
struct Free {
    numbers: BTreeSet<u8>,
    count: u8,
}

/// A lane that a call is in.
pub(crate) struct Occupied {
    lanes: Arc<Lanes>,
    pub(crate) number: u8,
    _entrance: OwnedSemaphorePermit,
}

impl AllLanes {
    /// The lanes of the key, at least this number.
    pub(crate) fn of(&self, family: &Family, count: u8) -> Arc<Lanes> {
        // Every change is one entry, so a panic elsewhere leaves the map sound.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.get(family.key()).and_then(Weak::upgrade);
        let lanes = known.unwrap_or_else(|| {
            all.retain(|_, lanes| lanes.strong_count() > 0);
            let lanes = Lanes { free: Mutex::default(), entrance: Arc::new(Semaphore::new(0)) };
            let lanes = Arc::new(lanes);
            all.insert(family.key().clone(), Arc::downgrade(&lanes));
            lanes
        });
        lanes.grow(count);
        lanes
    }
}

impl Lanes {
    fn grow(&self, count: u8) {
        let mut free = self.free();
        let new = count.saturating_sub(free.count);
        let first = free.count + 1;
        free.numbers.extend(first..first + new);
        free.count += new;
        self.entrance.add_permits(usize::from(new));
    }

    /// Waits for a lane behind those that came before.
    ///
    /// # Cancel safety
    /// The call is in no lane, and does not wait any more.
    pub(crate) async fn enter(self: &Arc<Self>) -> Option<Occupied> {
        // It is never closed.
        let entrance = Arc::clone(&self.entrance).acquire_owned().await.ok()?;
        self.occupy(entrance)
    }

    /// A lane that is free, and that no call waits for.
    pub(crate) fn try_enter(self: &Arc<Self>) -> Option<Occupied> {
        let entrance = Arc::clone(&self.entrance).try_acquire_owned().ok()?;
        self.occupy(entrance)
    }

    fn occupy(self: &Arc<Self>, entrance: OwnedSemaphorePermit) -> Option<Occupied> {
        let number = self.free().numbers.pop_first()?;
        Some(Occupied { lanes: Arc::clone(self), number, _entrance: entrance })
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        // Every change is one number, so a panic elsewhere leaves it sound.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        // Before the next call can enter, which is when the entrance is dropped.
        self.lanes.free().numbers.insert(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_number_of_permits_adds_lanes_with_numbers_of_their_own() {
        let (all, family) = (AllLanes::default(), Family::of(&LockKey::from_static("k"), 0));
        let family = family.unwrap();
        let occupied = |count| {
            let lanes = all.of(&family, count);
            let occupied: Vec<_> = std::iter::from_fn(|| lanes.try_enter()).collect();
            occupied
        };
        let few = occupied(2);
        let more = occupied(5);
        let numbers = few.iter().chain(&more).map(|lane| lane.number);
        assert_eq!(numbers.collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert!(occupied(3).is_empty());
    }
}
