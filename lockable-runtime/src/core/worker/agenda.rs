//! Work that is due at its time: renewals, releases and waiters are scheduled here.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, Hash};

use crate::core::process::clock::Moment;

/// Entries under their keys, each due at some moment or at none. Knows no clock: moments are given.
///
/// An entry that was taken stays, and is due again only when it is scheduled again; so nothing is done twice at the
/// same time.
pub(crate) struct Agenda<K, T> {
    entries: HashMap<K, Scheduled<T>>,
    due: BTreeSet<(Moment, K)>,
}

struct Scheduled<T> {
    item: T,
    due: Option<Moment>,
}

impl<K: Clone + Eq + Hash + Ord, T> Agenda<K, T> {
    pub(crate) fn insert(&mut self, key: K, item: T, due: Option<Moment>) -> Option<T> {
        let former = self.remove(&key);
        self.due.extend(due.map(|due| (due, key.clone())));
        self.entries.insert(key, Scheduled { item, due });
        former
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<T> {
        let entry = self.entries.remove(key)?;
        trim(&mut self.entries);
        if let Some(due) = entry.due {
            self.due.remove(&(due, key.clone()));
        }
        Some(entry.item)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut T> {
        self.entries.get_mut(key).map(|entry| &mut entry.item)
    }

    /// The key of an entry that is chosen; looks at one after the other.
    pub(crate) fn key_of(&self, choose: impl Fn(&T) -> bool) -> Option<&K> {
        self.entries.iter().find(|(_, entry)| choose(&entry.item)).map(|(key, _)| key)
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = &T> {
        self.entries.values().map(|entry| &entry.item)
    }

    pub(crate) fn items_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.values_mut().map(|entry| &mut entry.item)
    }

    /// Makes an entry due at that moment, and at no other; does nothing if it is gone.
    pub(crate) fn schedule(&mut self, key: &K, due: Moment) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if let Some(former) = entry.due.replace(due) {
            self.due.remove(&(former, key.clone()));
        }
        self.due.insert((due, key.clone()));
    }

    /// Makes an entry due at that moment at the latest, also one that is being performed.
    pub(crate) fn schedule_by(&mut self, key: &K, due: Moment) {
        let former = self.entries.get(key).and_then(|entry| entry.due);
        self.schedule(key, former.map_or(due, |former| former.min(due)));
    }

    /// As [`schedule_by`](Self::schedule_by), for all entries that `choose` accepts.
    pub(crate) fn schedule_where(&mut self, due: Moment, choose: impl Fn(&mut T) -> bool) {
        for entry in self.entries.values_mut() {
            if choose(&mut entry.item) {
                entry.due = Some(entry.due.map_or(due, |former| former.min(due)));
            }
        }
        let dues = self.entries.iter().filter_map(|(key, entry)| Some((entry.due?, key.clone())));
        self.due = dues.collect();
    }

    pub(crate) fn take_due(&mut self, now: Moment, limit: usize) -> Vec<K> {
        let mut taken = Vec::new();
        while taken.len() < limit
            && self.next_due().is_some_and(|due| due <= now)
            && let Some((_, key)) = self.due.pop_first()
        {
            if let Some(entry) = self.entries.get_mut(&key) {
                debug_assert!(entry.due <= Some(now), "an entry is done before it is due");
                entry.due = None;
            }
            taken.push(key);
        }
        taken
    }

    pub(crate) fn next_due(&self) -> Option<Moment> {
        self.due.first().map(|(due, _)| *due)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

impl<K, T> Default for Agenda<K, T> {
    fn default() -> Self {
        Self { entries: HashMap::new(), due: BTreeSet::new() }
    }
}

/// Frees the capacity of a crowd that has gone; seldom enough to cost nothing.
pub(crate) fn trim<K: Eq + Hash, V>(map: &mut HashMap<K, V>) {
    trim_to(map, SPARE);
}

pub(crate) fn trim_to<K, V, S>(map: &mut HashMap<K, V, S>, spare: usize)
where
    K: Eq + Hash,
    S: BuildHasher,
{
    if map.len() < map.capacity() / 8 {
        map.shrink_to(spare.max(2 * map.len()));
    }
}

const SPARE: usize = 64;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    fn at(nanos: u64) -> Moment {
        Moment::from_nanos(nanos)
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u8, Option<u64>),
        Remove(u8),
        Schedule(u8, u64),
        ScheduleBy(u8, u64),
        ScheduleAll(u64),
        TakeDue(u64, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let (keys, moments) = (0..6_u8, 0..12_u64);
        prop_oneof![
            (keys.clone(), option::of(moments.clone()))
                .prop_map(|(key, due)| Step::Insert(key, due)),
            keys.clone().prop_map(Step::Remove),
            (keys.clone(), moments.clone()).prop_map(|(key, due)| Step::Schedule(key, due)),
            (keys, moments.clone()).prop_map(|(key, due)| Step::ScheduleBy(key, due)),
            moments.clone().prop_map(Step::ScheduleAll),
            (moments, 0..4_usize).prop_map(|(now, limit)| Step::TakeDue(now, limit)),
        ]
    }

    type Plain = BTreeMap<u8, Option<u64>>;

    fn take_due(plain: &mut Plain, now: u64, limit: usize) -> Vec<u8> {
        let is_due = |(key, due): (&u8, &Option<u64>)| Some((due.filter(|due| *due <= now)?, *key));
        let mut due: Vec<_> = plain.iter().filter_map(is_due).collect();
        due.sort_unstable();
        let taken: Vec<_> = due.into_iter().map(|(_, key)| key).take(limit).collect();
        plain.extend(taken.iter().map(|key| (*key, None)));
        taken
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_plain_table(steps in vec(step(), 0..60)) {
            let (mut agenda, mut plain) = (Agenda::default(), Plain::new());
            for step in steps {
                match step {
                    Step::Insert(key, due) => {
                        let former = agenda.insert(key, (), due.map(at));
                        prop_assert_eq!(former.is_some(), plain.insert(key, due).is_some());
                    }
                    Step::Remove(key) => {
                        prop_assert_eq!(agenda.remove(&key).is_some(), plain.remove(&key).is_some());
                    }
                    Step::Schedule(key, due) => {
                        agenda.schedule(&key, at(due));
                        plain.entry(key).and_modify(|former| *former = Some(due));
                    }
                    Step::ScheduleBy(key, due) => {
                        agenda.schedule_by(&key, at(due));
                        let sooner = |former: &mut Option<u64>| {
                            *former = Some(former.map_or(due, |former| former.min(due)));
                        };
                        plain.entry(key).and_modify(sooner);
                    }
                    Step::ScheduleAll(due) => {
                        agenda.schedule_where(at(due), |()| true);
                        for former in plain.values_mut() {
                            *former = Some(former.map_or(due, |former| former.min(due)));
                        }
                    }
                    Step::TakeDue(now, limit) => {
                        let taken = take_due(&mut plain, now, limit);
                        prop_assert_eq!(agenda.take_due(at(now), limit), taken);
                    }
                }
                prop_assert_eq!(agenda.next_due(), plain.values().flatten().min().map(|due| at(*due)));
                prop_assert_eq!(agenda.len(), plain.len());
            }
        }
    }

    #[test]
    fn the_earliest_are_taken_first_and_once() {
        let mut agenda = Agenda::default();
        for (key, due) in [(1, 30), (2, 10), (3, 20), (4, 40)] {
            agenda.insert(key, (), Some(at(due)));
        }
        assert_eq!(agenda.take_due(at(30), 2), [2, 3]);
        assert_eq!(agenda.take_due(at(30), 2), [1]);
        assert_eq!(agenda.take_due(at(30), 2), [0; 0]);
        assert_eq!((agenda.len(), agenda.next_due()), (4, Some(at(40))));
    }

    #[test]
    fn a_taken_entry_is_due_again_when_it_is_scheduled() {
        let mut agenda = Agenda::default();
        agenda.insert(1, (), Some(at(10)));
        assert_eq!(agenda.take_due(at(10), 9), [1]);
        agenda.schedule(&1, at(30));
        agenda.schedule(&1, at(20));
        assert_eq!(agenda.take_due(at(25), 9), [1]);
        assert_eq!(agenda.next_due(), None);
    }

    #[test]
    fn a_removed_entry_is_never_due() {
        let mut agenda = Agenda::default();
        agenda.insert(1, "one", Some(at(10)));
        assert_eq!(agenda.remove(&1), Some("one"));
        agenda.schedule(&1, at(5));
        assert_eq!(agenda.take_due(at(99), 9), [0; 0]);
        assert_eq!(agenda.len(), 0);
    }

    #[test]
    fn an_entry_replaces_the_one_under_its_key() {
        let mut agenda = Agenda::default();
        agenda.insert(1, "old", Some(at(10)));
        assert_eq!(agenda.insert(1, "new", None), Some("old"));
        assert_eq!(agenda.take_due(at(99), 9), [0; 0]);
        assert_eq!(agenda.items().collect::<Vec<_>>(), [&"new"]);
    }

    #[test]
    fn all_can_be_made_due_at_once() {
        let mut agenda = Agenda::default();
        agenda.insert(1, (), None);
        agenda.insert(2, (), Some(at(50)));
        agenda.schedule_where(at(5), |()| true);
        assert_eq!(agenda.take_due(at(5), 9), [1, 2]);
        assert_eq!(agenda.next_due(), None);
    }

    #[test]
    fn what_is_due_before_all_are_stays_so() {
        let mut agenda = Agenda::default();
        agenda.insert(1, (), Some(at(10)));
        agenda.insert(2, (), Some(at(50)));
        agenda.schedule_where(at(30), |()| true);
        assert_eq!((agenda.take_due(at(10), 9), agenda.next_due()), (vec![1], Some(at(30))));
    }

    #[test]
    fn a_crowd_that_has_gone_leaves_no_capacity() {
        let mut agenda = Agenda::default();
        for key in 0..10_000 {
            agenda.insert(key, (), None);
        }
        for key in 10..10_000 {
            agenda.remove(&key);
        }
        assert!(agenda.entries.capacity() < 4 * SPARE, "{}", agenda.entries.capacity());
        assert_eq!(agenda.len(), 10);
    }
}
