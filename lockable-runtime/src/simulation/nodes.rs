//! One server of several, in tests: its data are copied to another one, or moved there key by key.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::core::backend::{AcquireReply, Attempt, Release};
use crate::core::memory::Memory;
use crate::core::memory::state::{Counting, StoredKey};
use crate::core::process::clock::{Moment, tokio_time};
use crate::core::types::key::LockKey;
use crate::core::types::permit::PermitsKey;
use crate::core::types::slot::Slot;

pub(crate) struct Snapshot {
    places: HashMap<LockKey, StoredKey>,
    queues: HashMap<LockKey, VecDeque<Arc<Attempt>>>,
    counting: Counting,
}

/// A single key of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Lock(LockKey),
    /// Of this lock, or of all permits.
    Queue(LockKey),
    Counter(Slot),
}

impl Memory {
    pub(crate) fn snapshot(&self) -> Snapshot {
        let state = self.state.lock();
        let (places, queues) = (state.places.clone(), state.queues.clone());
        Snapshot { places, queues, counting: state.counting.clone() }
    }

    /// Takes these data over, as a promoted replica. Its clock is not behind the former primary's, and each connection
    /// seeds the fence counters again.
    pub(crate) fn promote(&self, snapshot: Snapshot, former: &Self) {
        let latest = former.state.lock().counting.calendar.latest;
        let mut state = self.state.lock();
        (state.places, state.queues) = (snapshot.places, snapshot.queues);
        state.counting = snapshot.counting;
        state.counting.fences.clear();
        let calendar = &mut state.counting.calendar;
        calendar.latest = calendar.latest.max(latest);
    }

    /// With its marks.
    pub(crate) fn holder(&self, key: &LockKey) -> Option<String> {
        let held = self.state.lock().places.get(key)?.held(tokio_time())?;
        Some(held.owner.text().to_owned())
    }

    pub(crate) fn locks(&self) -> Vec<(LockKey, String, Moment)> {
        let now = tokio_time();
        let state = self.state.lock();
        let lock = |(key, place): (&LockKey, &StoredKey)| {
            let lock = place.lock.as_ref().filter(|lock| now < lock.ends)?;
            Some((key.clone(), lock.owner.as_ref().to_owned(), lock.ends))
        };
        let mut locks: Vec<_> = state.places.iter().filter_map(lock).collect();
        locks.sort_unstable();
        locks
    }

    pub(crate) fn has(&self, part: &Part) -> bool {
        match part {
            Part::Lock(key) => self.holder(key).is_some(),
            Part::Queue(key) => !self.queue(key).is_empty(),
            Part::Counter(slot) => {
                let state = self.state.lock();
                state.counting.fences.get(slot).is_some_and(|fence| tokio_time() < fence.expires)
            }
        }
    }

    /// Moves it to another store, if it is here.
    pub(crate) fn migrate(&self, part: &Part, to: &Self) {
        let (mut from, mut to) = (self.state.lock(), to.state.lock());
        match part {
            Part::Lock(key) => {
                let now = tokio_time();
                let place = from.places.get_mut(key).filter(|place| now < place.expires());
                let lock = place.and_then(|place| place.lock.take());
                if lock.is_some() {
                    to.places.entry(key.clone()).or_default().lock = lock;
                }
            }
            Part::Queue(key) => {
                if let Some(permits_key) = PermitsKey::of_permit(key) {
                    if let Some(queue) = from.queues.remove(permits_key.key()) {
                        to.queues.insert(permits_key.key().clone(), queue);
                    }
                } else {
                    let place = from.places.get_mut(key);
                    let queue = place.map(|place| std::mem::take(&mut place.queue));
                    to.places.entry(key.clone()).or_default().queue = queue.unwrap_or_default();
                }
            }
            Part::Counter(slot) => {
                if let Some(fence) = from.counting.fences.remove(slot) {
                    let latest = from.counting.calendar.latest;
                    let calendar = &mut to.counting.calendar;
                    calendar.latest = calendar.latest.max(latest);
                    to.counting.fences.insert(*slot, fence);
                }
            }
        }
    }
}

impl Memory {
    /// Takes the lock without a fencing token, or returns what it found.
    pub(crate) fn set_lock(&self, attempt: &Attempt) -> Option<AcquireReply> {
        self.change(attempt.key.clone(), |change| {
            if change.take(attempt).is_some() {
                return None;
            }
            Some(if change.is_done() { AcquireReply::Done } else { AcquireReply::Busy })
        })
    }

    pub(crate) fn count(&self, attempt: &Attempt) -> u64 {
        self.state.lock().counting.reserve(attempt, 1, tokio_time())
    }

    pub(crate) fn is_own(&self, attempt: &Attempt) -> bool {
        self.change(attempt.key.clone(), |change| change.is_held_by(attempt))
    }

    /// Frees the lock, without a hand-off.
    pub(crate) fn free_one(&self, attempt: &Attempt) -> Release {
        self.change(attempt.key.clone(), |change| change.end_hold(attempt))
    }

    pub(crate) fn leave_queue(&self, attempt: &Attempt) {
        let mut state = self.state.lock();
        let queue = if let Some(permits_key) = PermitsKey::of_permit(&attempt.key) {
            state.queues.get_mut(permits_key.key())
        } else {
            state.places.get_mut(&attempt.key).map(|place| &mut place.queue)
        };
        if let Some(queue) = queue {
            queue.retain(|other| other.owner != attempt.owner);
        }
    }
}
