//! What a watch knows of each lock, and what has changed from one snapshot to the next.
//!
//! It takes each snapshot and its time, and waits for nothing itself.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Place;
use std::time::Duration;

use lockable_runtime::admin::{HeldLock, HolderId, ProcessId, Waiter};
use lockable_runtime::{HeldSince, HolderKind};

use crate::clock::Moment;
use crate::commands::liveness::was_renewed;

/// The locks that were seen, by their names. `T` is what is shown of each.
pub(super) struct History<T> {
    known: BTreeMap<String, Entry<T>>,
    /// How long a change stays marked.
    glance: Duration,
    /// What the first snapshot shows was there before the watch.
    is_first: bool,
}

/// One lock of a history.
pub(super) struct Entry<T> {
    pub(super) lock: T,
    pub(super) sight: Sight,
    pub(super) at: Moment,
    /// The longest rest that was seen of this hold.
    longest: Option<Duration>,
    change: Change,
    changed_at: Moment,
    /// Whether the snapshot under way has shown it.
    is_seen: bool,
}

/// What one snapshot shows of a lock, as far as it is compared with the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sight {
    pub(super) hold: Hold,
    pub(super) remaining: Option<Duration>,
    pub(super) queued: usize,
    /// Those who wait, where they were asked for.
    pub(super) queue: Vec<Waiter>,
}

/// Which hold it is, whether or not a waiter has put its mark into the value meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    kind: HolderKind,
    process: Option<ProcessId>,
    since: Option<HeldSince>,
    request_id: Option<String>,
    /// The id of another library's value, which says nothing else.
    foreign: Option<HolderId>,
}

/// What a snapshot shows to be different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It was there in the first snapshot.
    Listed,
    New,
    /// Another holder has it, or it is kept or done.
    Changed,
    /// More is left of the hold than without a renewal.
    Renewed,
    /// Others wait than before.
    Waiting,
    Gone,
    /// The snapshot failed in part, so it is not known whether the lock is held.
    Unseen,
}

/// How much of the locks a snapshot shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    /// A server did not reply.
    Part,
}

impl Change {
    /// Whether any other change is marked at once.
    fn is_unmarked(self) -> bool {
        matches!(self, Self::Listed | Self::Waiting | Self::Unseen)
    }
}

impl Hold {
    pub(super) fn of(lock: &HeldLock) -> Self {
        let holder = lock.holder();
        Self {
            kind: holder.kind(),
            process: holder.process(),
            since: holder.held_since(),
            request_id: holder.request_id().map(str::to_owned),
            foreign: holder.process().is_none().then(|| holder.id()),
        }
    }
}

impl Sight {
    pub(super) fn of(lock: &HeldLock, queue: Vec<Waiter>) -> Self {
        let (hold, remaining) = (Hold::of(lock), lock.holder().remaining());
        Self { hold, remaining, queued: lock.queued(), queue }
    }
}

impl<T> History<T> {
    pub(super) fn new(glance: Duration) -> Self {
        Self { known: BTreeMap::new(), glance, is_first: true }
    }

    /// Takes in a lock that the snapshot under way has shown; the output is what is different.
    pub(super) fn see(&mut self, name: &str, lock: T, sight: Sight, now: Moment) -> Option<Change> {
        let first = if self.is_first { Change::Listed } else { Change::New };
        match self.known.entry(name.to_owned()) {
            Place::Vacant(place) => {
                place.insert(Entry::new(lock, sight, first, now));
                Some(first)
            }
            Place::Occupied(mut place) if place.get().change == Change::Gone => {
                place.insert(Entry::new(lock, sight, first, now));
                Some(first)
            }
            Place::Occupied(mut place) => place.get_mut().see(lock, sight, now, self.glance),
        }
    }

    /// Ends the snapshot; the output is what is not held any more. What was gone for a glance is forgotten.
    pub(super) fn end(&mut self, extent: Extent, now: Moment) -> Vec<&Entry<T>> {
        self.is_first = false;
        let glance = self.glance;
        self.known.retain(|_, entry| {
            !(entry.change == Change::Gone && now.since(entry.changed_at) >= glance)
        });
        let mut gone = Vec::new();
        for entry in self.known.values_mut() {
            if entry.ends_unseen(extent, now) {
                gone.push(&*entry);
            }
        }
        gone
    }

    /// Whether no snapshot has ended yet.
    pub(super) fn is_first(&self) -> bool {
        self.is_first
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry<T>> {
        self.known.values()
    }
}

impl<T> Entry<T> {
    fn new(lock: T, sight: Sight, change: Change, now: Moment) -> Self {
        let longest = sight.remaining;
        Self { lock, sight, at: now, longest, change, changed_at: now, is_seen: true }
    }

    /// The mark of a change stays for a glance; until then, less does not replace it.
    fn see(&mut self, lock: T, sight: Sight, now: Moment, glance: Duration) -> Option<Change> {
        let change = self.change_to(&sight, now);
        let is_over = self.change.is_unmarked() || now.since(self.changed_at) >= glance;
        let is_same_hold = change != Some(Change::Changed);
        let longest = sight.remaining.max(self.longest.filter(|_| is_same_hold));
        *self = Self { lock, sight, at: now, longest, is_seen: true, ..*self };
        match change {
            Some(change) if is_over || change == Change::Changed => self.mark(change, now),
            None if is_over => self.mark(Change::Listed, now),
            _ => {}
        }
        change
    }

    fn change_to(&self, sight: &Sight, now: Moment) -> Option<Change> {
        let (before, looked) = (&self.sight, now.since(self.at));
        if before.hold != sight.hold {
            return Some(Change::Changed);
        }
        let late = self.late(looked);
        let expected = before.remaining.map(|before| before.saturating_add(late));
        if was_renewed(expected, sight.remaining, looked) {
            return Some(Change::Renewed);
        }
        let waits_otherwise = before.queued != sight.queued || before.queue != sight.queue;
        waits_otherwise.then_some(Change::Waiting)
    }

    /// By how much a snapshot may be late on a busy machine. A renewal brings a third of a lease back, which is more.
    fn late(&self, looked: Duration) -> Duration {
        (looked / 2).max(self.longest.unwrap_or_default() / 20)
    }

    /// Ends a snapshot; whether it has shown that the lock is not held any more.
    fn ends_unseen(&mut self, extent: Extent, now: Moment) -> bool {
        let is_seen = std::mem::replace(&mut self.is_seen, false);
        let is_gone = self.change == Change::Gone;
        match extent {
            _ if is_seen || is_gone => return false,
            Extent::Part => self.mark(Change::Unseen, now),
            Extent::Whole => self.mark(Change::Gone, now),
        }
        extent == Extent::Whole
    }

    fn mark(&mut self, change: Change, now: Moment) {
        (self.change, self.changed_at) = (change, now);
    }

    /// What was different lately.
    pub(super) fn change(&self) -> Change {
        self.change
    }

    /// What is left of the hold now, unless it was renewed since it was seen.
    pub(super) fn left(&self, now: Moment) -> Option<Duration> {
        Some(self.sight.remaining?.saturating_sub(now.since(self.at)))
    }

    /// How much that is of the longest rest that was seen, in this number of steps.
    pub(super) fn share(&self, now: Moment, steps: usize) -> Option<usize> {
        let (left, longest) = (self.left(now)?.as_nanos(), self.longest?.as_nanos());
        let steps_left = (left * u128::try_from(steps).ok()?).div_ceil(longest.max(1));
        usize::try_from(steps_left).ok().map(|share| share.min(steps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLANCE: Duration = Duration::from_secs(3);

    fn hold(process: &str, kind: HolderKind) -> Hold {
        let process = process.parse().ok();
        Hold { kind, process, since: None, request_id: None, foreign: None }
    }

    fn sight(process: &str, remaining: u64, queued: usize) -> Sight {
        let hold = hold(process, HolderKind::Exclusive);
        Sight { hold, remaining: Some(Duration::from_secs(remaining)), queued, queue: Vec::new() }
    }

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    /// A history in which `a` was there, with 30 s left of its hold.
    fn begun() -> History<()> {
        let mut history = History::new(GLANCE);
        assert_eq!(history.see("a", (), sight("00000a", 30, 0), at(0)), Some(Change::Listed));
        assert!(history.end(Extent::Whole, at(0)).is_empty());
        history
    }

    fn mark(history: &History<()>) -> Change {
        history.entries().next().unwrap().change()
    }

    #[test]
    fn a_lease_that_runs_down_is_no_change() {
        let mut history = begun();
        assert_eq!(history.see("a", (), sight("00000a", 29, 0), at(1)), None);
        assert_eq!(history.see("a", (), sight("00000a", 20, 0), at(10)), None);
        let entry = history.entries().next().unwrap();
        assert_eq!((entry.share(at(10), 10), entry.share(at(25), 10)), (Some(7), Some(2)));
    }

    #[test]
    fn a_rest_that_grew_is_a_renewal() {
        let mut history = begun();
        assert_eq!(history.see("a", (), sight("00000a", 30, 0), at(10)), Some(Change::Renewed));
        assert_eq!(history.see("a", (), sight("00000a", 29, 1), at(11)), Some(Change::Waiting));
        assert_eq!(mark(&history), Change::Renewed, "it stays for a glance");
        assert_eq!(history.see("a", (), sight("00000a", 26, 1), at(14)), None);
        assert_eq!(mark(&history), Change::Listed);
        history.see("a", (), sight("00000a", 30, 1), at(15));
        assert_eq!(mark(&history), Change::Renewed);
    }

    #[test]
    fn a_look_that_is_late_shows_no_renewal() {
        let mut history = begun();
        assert_eq!(history.see("a", (), sight("00000a", 29, 0), at(2)), None);
        assert_eq!(history.see("a", (), sight("00000a", 28, 0), at(4)), None);
        assert_eq!(history.see("a", (), sight("00000a", 28, 0), at(5)), None);
    }

    #[test]
    fn the_bar_is_of_the_longest_rest_of_the_hold() {
        let mut history = begun();
        history.see("a", (), sight("00000a", 60, 0), at(10));
        assert_eq!(history.entries().next().unwrap().share(at(40), 10), Some(5));
        assert_eq!(history.see("a", (), sight("00000b", 10, 0), at(40)), Some(Change::Changed));
        assert_eq!(history.entries().next().unwrap().share(at(40), 10), Some(10));
    }

    #[test]
    fn what_is_gone_is_shown_for_a_glance() {
        let mut history = begun();
        history.see("b", (), sight("00000b", 30, 0), at(1));
        assert_eq!(history.end(Extent::Whole, at(1)).len(), 1);
        assert_eq!(mark(&history), Change::Gone);
        history.see("b", (), sight("00000b", 29, 0), at(2));
        assert!(history.end(Extent::Whole, at(2)).is_empty(), "it is gone once");
        assert_eq!(history.entries().count(), 2);
        history.see("b", (), sight("00000b", 27, 0), at(4));
        history.end(Extent::Whole, at(4));
        assert_eq!(history.entries().count(), 1);
    }

    #[test]
    fn a_lock_that_comes_back_is_new() {
        let mut history = begun();
        history.end(Extent::Whole, at(1));
        assert_eq!(history.see("a", (), sight("00000a", 29, 0), at(2)), Some(Change::New));
        assert_eq!(history.see("a", (), sight("00000b", 29, 0), at(2)), Some(Change::Changed));
        assert_eq!(mark(&history), Change::Changed);
    }

    #[test]
    fn a_look_in_part_shows_no_end() {
        let mut history = begun();
        assert!(history.end(Extent::Part, at(1)).is_empty());
        assert_eq!(mark(&history), Change::Unseen);
        assert_eq!(history.see("a", (), sight("00000a", 28, 0), at(2)), None);
        assert_eq!(mark(&history), Change::Listed);
    }

    #[test]
    fn a_hold_that_is_kept_is_another_state_of_the_lock() {
        let mut history = begun();
        let kept =
            Sight { hold: hold("00000a", HolderKind::KeptByMinHold), ..sight("00000a", 29, 0) };
        assert_eq!(history.see("a", (), kept, at(1)), Some(Change::Changed));
    }
}
