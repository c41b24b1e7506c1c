//! The local permits of a process: for each key that has permits, as many calls as it has permits send requests and
//! hold at a time, and the other calls wait for these without a request.
//!
//! See "How are `permits` made of plain locks?" in DESIGN.md.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Sleep;

use crate::core::process::clock::within;
use crate::core::process::mutex::Mutex;
use crate::core::types::key::LockKey;
use crate::core::types::permit::PermitsKey;

#[derive(Default)]
pub(crate) struct AllLocalPermits(Mutex<HashMap<LockKey, Weak<LocalPermits>>>);

/// The local permits of one key. Calls with different numbers of permits share them.
pub(crate) struct LocalPermits {
    numbers: Mutex<Numbers>,
    /// As many as numbers are free. Waiting calls get them in the order of arrival.
    entrance: Semaphore,
}

#[derive(Default)]
struct Numbers {
    free: BTreeSet<u8>,
    taken: BTreeMap<u8, Stay>,
    count: u8,
    stays: u64,
}

struct Stay {
    id: u64,
    rest: Option<Rest>,
}

type Rest = Box<dyn Fn() -> Duration + Send>;

/// A local permit that a call has, until this is dropped or the call's lease is over.
pub(crate) struct Occupied {
    local_permits: Arc<LocalPermits>,
    pub(crate) number: u8,
    id: u64,
}

impl AllLocalPermits {
    /// The local permits of the key, at least this number.
    pub(crate) fn of(&self, permits_key: &PermitsKey, count: u8) -> Arc<LocalPermits> {
        // Every change is one entry, so a panic elsewhere leaves the map sound.
        let mut all = self.0.lock();
        let known = all.get(permits_key.key()).and_then(Weak::upgrade);
        let local_permits = known.unwrap_or_else(|| {
            all.retain(|_, local_permits| local_permits.strong_count() > 0);
            let local_permits =
                LocalPermits { numbers: Mutex::default(), entrance: Semaphore::new(0) };
            let local_permits = Arc::new(local_permits);
            all.insert(permits_key.key().clone(), Arc::downgrade(&local_permits));
            local_permits
        });
        local_permits.grow(count);
        local_permits
    }
}

impl LocalPermits {
    fn grow(&self, count: u8) {
        let mut numbers = self.numbers.lock();
        let new = count.saturating_sub(numbers.count);
        let first = numbers.count + 1;
        numbers.free.extend(first..first + new);
        numbers.count += new;
        self.entrance.add_permits(usize::from(new));
    }

    /// Waits for a local permit behind those that came before.
    ///
    /// # Cancel safety
    /// The call has no local permit, and does not wait any more.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        timer: impl Fn(Duration) -> Sleep,
    ) -> Option<Occupied> {
        let mut entrance = pin!(self.entrance.acquire());
        loop {
            let rest = self.leave_at_the_end();
            if let Some(entered) = within(|| timer(rest), entrance.as_mut()).await {
                // It is never closed.
                entered.ok()?.forget();
                return self.occupy();
            }
        }
    }

    pub(crate) fn try_enter(self: &Arc<Self>) -> Option<Occupied> {
        if self.entrance.available_permits() == 0 {
            self.leave_at_the_end();
        }
        self.entrance.try_acquire().ok()?.forget();
        self.occupy()
    }

    fn occupy(self: &Arc<Self>) -> Option<Occupied> {
        let mut numbers = self.numbers.lock();
        let number = numbers.free.pop_first()?;
        numbers.stays += 1;
        let id = numbers.stays;
        numbers.taken.insert(number, Stay { id, rest: None });
        Some(Occupied { local_permits: Arc::clone(self), number, id })
    }

    /// Frees the local permits of calls whose lease is over, even if they continue without it; returns when the next
    /// may be.
    fn leave_at_the_end(&self) -> Duration {
        let (mut over, mut next) = (Vec::new(), LOOK);
        for (number, stay) in &self.numbers.lock().taken {
            match stay.rest.as_ref().map_or(LOOK, |rest| rest()) {
                Duration::ZERO => over.push((*number, stay.id)),
                rest => next = next.min(rest),
            }
        }
        for (number, id) in over {
            self.leave(number, id);
        }
        next
    }

    fn leave(&self, number: u8, id: u64) {
        let mut numbers = self.numbers.lock();
        if numbers.taken.get(&number).is_none_or(|stay| stay.id != id) {
            return;
        }
        let stay = numbers.taken.remove(&number);
        // Before the next call can enter.
        numbers.free.insert(number);
        drop(numbers);
        self.entrance.add_permits(1);
        // It has a lease.
        drop(stay);
    }
}

impl Occupied {
    pub(crate) fn lasts(&self, rest: Rest) {
        if let Some(stay) = self.local_permits.numbers.lock().taken.get_mut(&self.number) {
            stay.rest = Some(rest);
        }
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        self.local_permits.leave(self.number, self.id);
    }
}

/// How often a waiting call checks for a lease that is over: one that was granted meanwhile may be short.
const LOOK: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_number_adds_local_permits_with_numbers_of_their_own() {
        let (all, permits_key) =
            (AllLocalPermits::default(), PermitsKey::of(&LockKey::from_static("k"), 0));
        let permits_key = permits_key.unwrap();
        let occupied = |count| {
            let local_permits = all.of(&permits_key, count);
            let occupied: Vec<_> = std::iter::from_fn(|| local_permits.try_enter()).collect();
            occupied
        };
        let few = occupied(2);
        let more = occupied(5);
        let numbers = few.iter().chain(&more).map(|local_permit| local_permit.number);
        assert_eq!(numbers.collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert!(occupied(3).is_empty());
    }
}
