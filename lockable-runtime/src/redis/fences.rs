//! The fence counters that this connection has seeded, so that acquiring only has to count them up.
//!
//! See "When does a connection trust a fence counter?" in DESIGN.md.

use std::iter;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::core::process::clock::Moment;
use crate::core::types::options::{FENCE_LIFE, Ttl};
use crate::core::types::slot::{COUNT, SLOTS, Slot};

/// When all is forgotten: a fence counter lives for at least ten minutes, and the server's clock may be faster.
const REMEMBERED_FOR: Duration = Duration::from_secs(594);

/// How many other counters one script seeds.
const OTHERS: usize = 63;

/// How many bits of a word are the count: as many as scripts compute exactly.
const COUNT_BITS: u32 = 53;
const HIGHEST_COUNT: u64 = (1 << COUNT_BITS) - 1;

/// The fence counters that one connection seeded lately, with the highest count seen of each.
///
/// Those of other connections do not count: their server may have been another, or have lost its latest grants since.
/// The memory may be wrong, because a fence counter can be deleted, and a proxy can move an open connection to another
/// server. Both show at the next count, unless that is higher all the same.
pub(crate) struct FenceCounters {
    /// A word for each slot, 128 KiB in all, made at the first seed: the highest count, and above it the [class](class)
    /// of the counter's life; zero if not seeded here.
    words: OnceLock<Box<[AtomicU64]>>,
    /// The first slot whose counter has not been seeded together with another.
    next: AtomicU16,
    /// Since when this remembers, in nanoseconds since boot.
    since: AtomicU64,
    /// How many counters were known to be lost then.
    lost: AtomicU64,
    all_lost: LostCounters,
}

/// How many fence counters a locker's connections have found lost. A server that lost one may have lost all, so every
/// connection forgets its seeds.
#[derive(Clone, Default)]
pub(crate) struct LostCounters(Arc<AtomicU64>);

/// A fence counter that a connection has seeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeededFence {
    /// The highest count seen before the request was sent.
    highest: u64,
}

impl SeededFence {
    /// Whether the count of a request sent then is that of another counter: a new one, or one that missed grants.
    ///
    /// See "Can fencing tokens repeat behind a proxy after a failover?" in DESIGN.md for what this misses.
    pub(crate) fn is_lost(self, count: u64) -> bool {
        count <= self.highest
    }
}

impl FenceCounters {
    pub(crate) fn new(all_lost: LostCounters) -> Self {
        let lost = AtomicU64::new(all_lost.count());
        let (next, since) = (AtomicU16::new(0), AtomicU64::new(0));
        Self { words: OnceLock::new(), next, since, lost, all_lost }
    }

    /// The slot's fence counter, if this connection has seeded it for leases that long.
    pub(crate) fn seeded(&self, slot: Slot, ttl: Ttl, now: Moment) -> Option<SeededFence> {
        self.forget_when_due(now);
        let word = self.words.get()?.get(slot.index())?.load(Ordering::Acquire);
        let is_enough = class(ttl).is_some_and(|class| word >> COUNT_BITS >= class);
        is_enough.then_some(SeededFence { highest: word & HIGHEST_COUNT })
    }

    /// The slots to seed together with `own`: each slot once, even if many calls seed at once. None with the first
    /// seed, because many processes lock a single key, or for a lease so long that counters are not noted.
    ///
    /// See "Which fence counters does one script seed?" in DESIGN.md.
    pub(crate) fn others(&self, own: Slot, ttl: Ttl) -> Vec<Slot> {
        let (Some(words), Some(_)) = (self.words.get(), class(ttl)) else { return Vec::new() };
        let word = |slot: Slot| words.get(slot.index()).map(|word| word.load(Ordering::Acquire));
        let is_new = |slot: &Slot| word(*slot) == Some(0);
        let offered = iter::from_fn(|| self.offer());
        offered.filter(|slot| *slot != own && is_new(slot)).take(OTHERS).collect()
    }

    fn offer(&self) -> Option<Slot> {
        let next = |next: u16| next.checked_add(1).filter(|next| usize::from(*next) <= SLOTS);
        let offered = self.next.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        offered.ok().map(Slot::new)
    }

    pub(crate) fn seed_alone(&self) {
        self.next.store(COUNT, Ordering::Release);
    }

    /// A request sent then has seeded the fence counter with that token.
    pub(crate) fn seed(&self, slot: Slot, ttl: Ttl, sent: Moment, token: u64) {
        let is_forgotten = sent.as_nanos() < self.since.load(Ordering::Acquire);
        if let Some(class) = class(ttl).filter(|_| !is_forgotten) {
            let words = self.words.get_or_init(|| (0..SLOTS).map(|_| AtomicU64::new(0)).collect());
            note(words, slot, |before| Some(before.max(class)), token);
        }
    }

    pub(crate) fn lose(&self, now: Moment) {
        self.all_lost.0.fetch_add(1, Ordering::AcqRel);
        self.forget_when_due(now);
    }

    /// A fence counter has reached this count.
    pub(crate) fn note(&self, slot: Slot, count: u64) {
        let words = self.words.get().map_or(&[][..], |words| words);
        // What was forgotten meanwhile stays forgotten.
        note(words, slot, |class| (class > 0).then_some(class), count);
    }

    /// The counter of this slot may be another now.
    pub(crate) fn forget(&self, slot: Slot) {
        if let Some(word) = self.words.get().and_then(|words| words.get(slot.index())) {
            word.store(0, Ordering::Release);
        }
    }

    fn forget_when_due(&self, now: Moment) {
        let since = Moment::from_nanos(self.since.load(Ordering::Acquire));
        let lost = self.all_lost.count();
        let is_over = now.since(since) >= REMEMBERED_FOR;
        if !is_over && lost == self.lost.load(Ordering::Acquire) {
            return;
        }
        // After a loss one by one: others that were seeded at a wrong server would be found lost again and again.
        self.next.store(if is_over { 0 } else { COUNT }, Ordering::Release);
        self.lost.store(lost, Ordering::Release);
        self.since.store(now.as_nanos(), Ordering::Release);
        let words = self.words.get().into_iter().flatten();
        words.for_each(|word| word.store(0, Ordering::Release));
    }
}

impl LostCounters {
    fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// The life of a counter that is seeded for such a lease, in multiples of the shortest; `None` if a word cannot hold
/// it: then it is seeded at every grant.
fn class(ttl: Ttl) -> Option<u64> {
    let class = u64::try_from(ttl.fence_life().as_millis() / u128::from(FENCE_LIFE));
    class.ok().filter(|class| *class <= u64::MAX >> COUNT_BITS)
}

/// Notes a slot's count if it is the highest, and its class, which follows from the former one.
fn note(words: &[AtomicU64], slot: Slot, class: impl Fn(u64) -> Option<u64>, count: u64) {
    let Some(word) = words.get(slot.index()) else { return };
    let noted = |word: u64| {
        let count = count.min(HIGHEST_COUNT).max(word & HIGHEST_COUNT);
        Some(class(word >> COUNT_BITS)? << COUNT_BITS | count)
    };
    // Not written where that would change nothing.
    let _former: Result<u64, u64> =
        word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
            noted(word).filter(|new| *new != word)
        });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::types::key::LockKey;

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    fn ttl(seconds: u64) -> Ttl {
        Ttl::new("expire", Duration::from_secs(seconds)).unwrap()
    }

    fn slot() -> Slot {
        Slot::of(&LockKey::from_static("order:7"))
    }

    fn seeded() -> FenceCounters {
        let fences = FenceCounters::new(LostCounters::default());
        assert_eq!(fences.seeded(slot(), ttl(10), at(1_000)), None);
        fences.seed(slot(), ttl(10), at(1_000), 1_000);
        fences
    }

    #[test]
    fn a_seeded_counter_is_known_while_it_lasts() {
        let fences = seeded();
        for now in [1_000, 1_593] {
            assert_eq!(
                fences.seeded(slot(), ttl(10), at(now)),
                Some(SeededFence { highest: 1_000 })
            );
        }
        let other = Slot::of(&LockKey::from_static("order:8"));
        assert_eq!(fences.seeded(other, ttl(10), at(1_593)), None);
        assert_eq!(fences.seeded(slot(), ttl(10), at(1_594)), None);
    }

    #[test]
    fn a_count_that_is_not_higher_shows_another_counter() {
        let fences = seeded();
        // The answers to two requests may come in the other order.
        fences.note(slot(), 1_007);
        fences.note(slot(), 1_003);
        let seeded = fences.seeded(slot(), ttl(10), at(1_000)).unwrap();
        assert!(seeded.is_lost(1) && seeded.is_lost(1_007) && !seeded.is_lost(1_008));
    }

    #[test]
    fn a_lost_counter_makes_all_connections_forget() {
        let all_lost = LostCounters::default();
        let connections = [(); 2].map(|()| FenceCounters::new(all_lost.clone()));
        for fences in &connections {
            assert_eq!(fences.seeded(slot(), ttl(10), at(1_000)), None);
            fences.seed(slot(), ttl(10), at(1_000), 7);
        }
        connections[0].lose(at(1_001));
        for fences in &connections {
            assert_eq!(fences.seeded(slot(), ttl(10), at(1_001)), None);
            // What was under way meanwhile may have reached the former server.
            fences.seed(slot(), ttl(10), at(1_000), 9);
            fences.note(slot(), 9);
            assert_eq!(fences.seeded(slot(), ttl(10), at(1_001)), None);
        }
    }

    #[test]
    fn each_counter_is_seeded_once_beside_another() {
        let first = FenceCounters::new(LostCounters::default());
        assert_eq!(first.others(slot(), ttl(10)), []);
        let fences = seeded();
        let mut others = Vec::new();
        while let more @ [_, ..] = &*fences.others(Slot::new(7), ttl(10)) {
            assert!(more.len() == OTHERS || others.len() + more.len() == SLOTS - 2);
            others.extend_from_slice(more);
        }
        let all = Slot::all().filter(|other| ![slot(), Slot::new(7)].contains(other));
        assert_eq!(others, all.collect::<Vec<_>>());
        // All are forgotten after a while.
        assert_eq!(fences.seeded(slot(), ttl(10), at(1_594)), None);
        assert_eq!(fences.others(slot(), ttl(10)).len(), OTHERS);
    }

    /// Until all is forgotten after a time.
    #[test]
    fn after_a_loss_counters_are_seeded_one_by_one() {
        let fences = seeded();
        fences.lose(at(1_001));
        assert_eq!(fences.others(slot(), ttl(10)), []);
        assert_eq!(fences.seeded(slot(), ttl(10), at(1_595)), None);
        assert_eq!(fences.others(slot(), ttl(10)).len(), OTHERS);
        fences.seed_alone();
        assert_eq!(fences.others(slot(), ttl(10)), []);
    }

    #[test]
    fn a_longer_lease_seeds_once_more() {
        let fences = seeded();
        assert_eq!(fences.seeded(slot(), ttl(61), at(1_000)), None);
        fences.seed(slot(), ttl(61), at(1_000), 2_000);
        for seconds in [1, 61, 120] {
            assert!(fences.seeded(slot(), ttl(seconds), at(1_000)).is_some());
        }
        assert_eq!(fences.seeded(slot(), ttl(121), at(1_000)), None);
    }

    #[test]
    fn the_longest_leases_seed_at_every_grant() {
        let (fences, year) = (seeded(), ttl(365 * 86_400));
        fences.seed(slot(), year, at(1_000), 2_000);
        assert_eq!(fences.seeded(slot(), year, at(1_000)), None);
        assert_eq!(fences.others(slot(), year), []);
    }
}
