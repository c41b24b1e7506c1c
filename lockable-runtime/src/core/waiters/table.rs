//! The table of all entries: which calls of this locker try, wait for and hold each lock.
//!
//! A new call looks here first, and so saves a request. If another call tries, waits or holds, a call that may wait
//! joins the line at once; if a lease was confirmed a moment ago, a call that does not wait is busy. Calls that try and
//! wait are counted: one too many does no harm. Leases are listed, because they are renewed, and because their loss
//! must be found. The table is divided by the hash of the key into [`PARTS`], each with a mutex of its own, for several
//! threads. Under such a mutex nothing is woken, logged or dropped: the caller drops what a change leaves ([`Left`]).
//!
//! See "When is a call busy without a request to Redis?" in DESIGN.md.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::sync::MutexGuard;

use super::line::RECHECK_INTERVAL;
use crate::core::lease::Lease;
use crate::core::lease::renewal::Schedule;
use crate::core::process::clock::Moment;
use crate::core::process::mutex::Mutex;
use crate::core::types::key::LockKey;
use crate::core::types::line_key::LineKey;
use crate::core::types::options::Wait;
use crate::core::worker::agenda::trim_to;

/// A few for each thread that uses them.
const PARTS: usize = 32;

const SPARE: usize = 8;

#[derive(Default)]
pub(super) struct Table {
    hasher: RandomState,
    parts: [TablePart; PARTS],
}

#[derive(Default)]
#[repr(align(128))]
struct TablePart(Mutex<PartEntries>);

#[derive(Default)]
struct PartEntries {
    next_number: u64,
    of_keys: HashMap<u64, Entries, BuildHasherDefault<Hashed>>,
}

/// The hash of the key, so that it is computed once, and a number in the order of arrival.
#[derive(Clone, Copy)]
pub(super) struct EntryId {
    hash: u64,
    pub(super) number: u64,
}

/// The entries of the calls for the keys of one hash: hardly ever more than one key.
///
/// If two keys share a hash, a call may needlessly join a line or be busy. Leases are compared by key.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) trying: usize,
    pub(super) waiting: usize,
    awaited: Option<LineKey>,
    held: Option<HeldEntry>,
    /// Leases of another key, and lost ones whose guard does not know of the loss yet.
    others: Vec<HeldEntry>,
}

pub(super) struct HeldEntry {
    pub(super) number: u64,
    pub(super) lease: Lease,
    pub(super) schedule: Option<Schedule>,
}

#[derive(Default)]
pub(super) struct Left {
    /// It may be the last to know its locker.
    pub(super) held: Option<HeldEntry>,
    /// The line that has waited for the end of this try.
    pub(super) awaited: Option<LineKey>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryRole {
    Tries,
    Waits,
    Holds,
    IsOver,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Tries,
    Joins {
        /// Whether no other call waits.
        is_first: bool,
    },
    /// It is busy without a request: the backend has just confirmed that this locker holds the lock, or the call would
    /// have to wait for others of its locker.
    IsBusy,
}

impl Table {
    pub(super) fn enter(&self, key: &LockKey, wait: Wait, now: Moment) -> (Admission, EntryId) {
        let hash = self.hasher.hash_one(key);
        let mut part = self.part(hash);
        part.next_number += 1;
        let at = EntryId { hash, number: part.next_number };
        let admission = match part.of_keys.entry(hash) {
            Entry::Occupied(mut entries) => entries.get_mut().enter(key, wait, now),
            Entry::Vacant(entries) => entries.insert(Entries::default()).enter(key, wait, now),
        };
        (admission, at)
    }

    pub(super) fn new_id(&self, line_key: &LineKey) -> EntryId {
        let hash = match line_key {
            LineKey::Lock(key) => self.hasher.hash_one(key),
            LineKey::LocalPermit(local_permit) => self.hasher.hash_one(local_permit),
        };
        let mut part = self.part(hash);
        part.next_number += 1;
        EntryId { hash, number: part.next_number }
    }

    pub(super) fn change<R>(&self, at: EntryId, change: impl FnOnce(&mut Entries) -> R) -> R {
        let mut part = self.part(at.hash);
        match part.of_keys.entry(at.hash) {
            Entry::Occupied(mut entries) => {
                let result = change(entries.get_mut());
                if entries.get().is_empty() {
                    let _empty: Entries = entries.remove();
                    trim_to(&mut part.of_keys, SPARE);
                }
                result
            }
            Entry::Vacant(place) => {
                let mut entries = Entries::default();
                let result = change(&mut entries);
                if !entries.is_empty() {
                    place.insert(entries);
                }
                result
            }
        }
    }

    pub(super) fn leases(&self, key: &LockKey) -> Vec<Lease> {
        let hash = self.hasher.hash_one(key);
        let part = self.part(hash);
        let entries = part.of_keys.get(&hash);
        entries.into_iter().flat_map(|entries| entries.leases(key)).cloned().collect()
    }

    pub(super) fn lookers(&self, key: &str, now: Moment) -> Vec<impl FnOnce() + use<>> {
        let hash = self.hasher.hash_one(key);
        let part = self.part(hash);
        let held = part.of_keys.get(&hash).into_iter().flat_map(Entries::held);
        let of_key = held.filter(|held| held.lease.key().as_str() == key);
        let renewed = of_key.filter(|held| held.lease.renews() && held.lease.is_holding(now));
        renewed.filter_map(|held| held.schedule.as_ref().map(Schedule::looker)).collect()
    }

    #[cfg(test)]
    pub(super) fn trying(&self, key: &LockKey) -> usize {
        let hash = self.hasher.hash_one(key);
        self.part(hash).of_keys.get(&hash).map_or(0, |entries| entries.trying)
    }

    pub(super) fn all(&self) -> Vec<(EntryId, Lease, bool)> {
        let mut all = Vec::new();
        for part in &self.parts {
            for (hash, entries) in &part.0.lock().of_keys {
                let at = |held: &HeldEntry| EntryId { hash: *hash, number: held.number };
                let seen =
                    |held: &HeldEntry| (at(held), held.lease.clone(), held.schedule.is_some());
                all.extend(entries.held().map(seen));
            }
        }
        all
    }

    #[expect(clippy::indexing_slicing, reason = "the remainder is below the length")]
    fn part(&self, hash: u64) -> MutexGuard<'_, PartEntries> {
        // Neither the lowest bits nor the highest ones: the map of the part uses those.
        self.parts[(hash >> 32) as usize % PARTS].0.lock()
    }
}

impl Entries {
    fn enter(&mut self, key: &LockKey, wait: Wait, now: Moment) -> Admission {
        let admission = self.admission(key, wait, now);
        match admission {
            Admission::Tries => self.trying += 1,
            Admission::Joins { .. } => self.waiting += 1,
            Admission::IsBusy => {}
        }
        admission
    }

    fn admission(&self, key: &LockKey, wait: Wait, now: Moment) -> Admission {
        let is_confirmed = |lease: &Lease| lease.is_confirmed(now, RECHECK_INTERVAL);
        let is_first = self.waiting == 0;
        let is_alone = is_first && self.trying == 0;
        if wait.can_wait() {
            let tries = is_alone && !self.is_held(key, now);
            return if tries { Admission::Tries } else { Admission::Joins { is_first } };
        }
        // A call whose limit is zero would have to wait for those.
        let waits = wait != Wait::Never && !is_alone;
        if waits || self.leases(key).any(is_confirmed) {
            Admission::IsBusy
        } else {
            Admission::Tries
        }
    }

    /// Whether the first call of a line waits for a try of another call, whose end then notifies the line.
    pub(super) fn awaits_try(&mut self, line: &LineKey, now: Moment) -> bool {
        let awaits = self.trying > 0 && !self.is_held(line.key(), now);
        if awaits && self.awaited.is_none() {
            self.awaited = Some(line.clone());
        }
        awaits
    }

    fn is_held(&self, key: &LockKey, now: Moment) -> bool {
        self.leases(key).any(|lease| lease.is_holding(now))
    }

    pub(super) fn leave(&mut self, role: EntryRole, number: u64) -> Left {
        let mut left = Left::default();
        match role {
            EntryRole::Tries => {
                self.trying -= 1;
                left.awaited = self.awaited.take();
            }
            EntryRole::Waits => self.waiting -= 1,
            EntryRole::Holds => left.held = self.take(number),
            EntryRole::IsOver => {}
        }
        left
    }

    pub(super) fn push(&mut self, held: HeldEntry) {
        match &self.held {
            None => self.held = Some(held),
            Some(_) => self.others.push(held),
        }
    }

    fn take(&mut self, number: u64) -> Option<HeldEntry> {
        let is_it = |held: &HeldEntry| held.number == number;
        if self.held.as_ref().is_some_and(is_it) {
            return self.held.take();
        }
        let at = self.others.iter().position(is_it)?;
        Some(self.others.swap_remove(at))
    }

    /// Stores the schedule of the lease of this number; returns it if that lease is gone, or has one.
    pub(super) fn attach(&mut self, number: u64, schedule: Schedule) -> Option<Schedule> {
        let mut held = self.held.iter_mut().chain(&mut self.others);
        match held.find(|held| held.number == number && held.schedule.is_none()) {
            Some(held) => held.schedule.replace(schedule),
            None => Some(schedule),
        }
    }

    pub(super) fn detach(&mut self, number: u64) -> Option<Schedule> {
        let mut held = self.held.iter_mut().chain(&mut self.others);
        held.find(|held| held.number == number)?.schedule.take()
    }

    fn held(&self) -> impl Iterator<Item = &HeldEntry> {
        self.held.iter().chain(&self.others)
    }

    fn leases(&self, key: &LockKey) -> impl Iterator<Item = &Lease> {
        self.held().map(|held| &held.lease).filter(move |lease| lease.key() == key)
    }

    fn is_empty(&self) -> bool {
        self.trying == 0 && self.waiting == 0 && self.held().next().is_none()
    }
}

#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        debug_assert!(false, "only hashes are hashed");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests;
