use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::core::backend::{Attempt, BackendContext};
use crate::core::lease::Loss;
use crate::core::process::clock::tokio_time;
use crate::core::types::options::{Options, Ttl};

const KEY: LockKey = LockKey::from_static("k");
const LINE: LineKey = LineKey::Lock(KEY);

fn lease(key: &LockKey) -> Lease {
    let attempt = Arc::new(Attempt::drawn(key.clone(), Ttl::DEFAULT));
    Lease::granted(attempt, &Options::default(), Arc::new(BackendContext::in_memory()))
}

impl Table {
    fn enters(&self, wait: Wait) -> (Admission, EntryId) {
        self.enter(&KEY, wait, tokio_time())
    }

    fn holds(&self, key: &LockKey) -> (EntryId, Lease) {
        let (lease, at) = (lease(key), self.enter(key, Wait::Never, tokio_time()).1);
        let held = HeldEntry { number: at.number, lease: lease.clone(), schedule: None };
        drop(self.change(at, |entries| {
            let left = entries.leave(EntryRole::Tries, at.number);
            entries.push(held);
            left
        }));
        (at, lease)
    }

    fn leaves(&self, at: EntryId, role: EntryRole) -> Left {
        self.change(at, |entries| entries.leave(role, at.number))
    }

    fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.0.lock().of_keys.is_empty())
    }
}

#[test]
fn every_stake_leaves_nothing() {
    let table = Table::default();
    let (held, _) = table.holds(&KEY);
    let (_, waits) = table.enters(Wait::Forever);
    assert_eq!(table.leases(&KEY).len(), 1);
    assert!(table.leaves(held, EntryRole::Holds).held.is_some());
    let (_, asks) = table.enters(Wait::Never);
    assert!(table.leaves(waits, EntryRole::Waits).held.is_none());
    assert!(table.leaves(asks, EntryRole::Tries).held.is_none());
    assert!(table.is_empty());
}

#[test]
fn numbers_rise_in_the_order_of_arrival() {
    let table = Table::default();
    let numbers: Vec<_> = (0..100).map(|_| table.enters(Wait::Forever).1.number).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
}

#[tokio::test(start_paused = true)]
async fn a_confirmed_lock_is_busy_for_less_than_a_recheck() {
    let table = Table::default();
    let (held, lease) = table.holds(&KEY);
    assert_eq!(table.enters(Wait::Never).0, Admission::IsBusy);
    tokio::time::advance(Duration::from_millis(799)).await;
    assert_eq!(table.enters(Wait::Never).0, Admission::IsBusy);
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(table.enters(Wait::Never).0, Admission::Tries);
    assert!(lease.is_held());
    table.leaves(held, EntryRole::Holds);
}

#[test]
fn a_lost_or_released_lock_is_not_busy() {
    let table = Table::default();
    let (_, lost) = table.holds(&KEY);
    assert_eq!(table.enters(Wait::Never).0, Admission::IsBusy);
    lost.refused(Loss::Absent);
    assert_eq!(table.enters(Wait::Never).0, Admission::Tries);
    let (held, _) = table.holds(&KEY);
    assert_eq!(table.enters(Wait::Never).0, Admission::IsBusy);
    table.leaves(held, EntryRole::Holds);
    assert_eq!(table.enters(Wait::Never).0, Admission::Tries);
}

/// Goal: two locks whose hashes are the same are two locks. Method: a lease is put where those of another key are.
#[test]
fn another_lock_of_the_same_hash_is_not_busy() {
    let table = Table::default();
    let (_, at) = table.enters(Wait::Forever);
    let other = lease(&LockKey::from_static("other"));
    table.change(at, |entries| {
        entries.push(HeldEntry { number: at.number, lease: other, schedule: None });
    });
    assert_eq!(table.enters(Wait::Never).0, Admission::Tries);
    assert!(table.leases(&KEY).is_empty());
}

#[test]
fn a_call_that_waits_joins_the_others() {
    let table = Table::default();
    let joins = |is_first| Admission::Joins { is_first };
    let (way, asks) = table.enters(Wait::Forever);
    assert_eq!(way, Admission::Tries);
    assert_eq!(table.enters(Wait::Never).0, Admission::Tries);
    let (way, waits) = table.enters(Wait::Forever);
    assert_eq!(way, joins(true));
    assert_eq!(table.enters(Wait::AtMost(Duration::from_nanos(1))).0, joins(false));
    drop(table.leaves(waits, EntryRole::Waits));
    drop(table.leaves(asks, EntryRole::Tries));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_joins_a_holder_until_its_lease_is_over() {
    let table = Table::default();
    let (_held, _) = table.holds(&KEY);
    tokio::time::advance(Duration::from_millis(9_897)).await;
    let (way, waits) = table.enters(Wait::Forever);
    assert_eq!(way, Admission::Joins { is_first: true });
    drop(table.leaves(waits, EntryRole::Waits));
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(table.enters(Wait::Forever).0, Admission::Tries);
}

#[test]
fn a_limit_of_zero_is_busy_where_others_are() {
    let table = Table::default();
    let zero = Wait::AtMost(Duration::ZERO);
    let (way, asks) = table.enters(zero);
    assert_eq!(way, Admission::Tries);
    assert_eq!(table.enters(zero).0, Admission::IsBusy);
    let (_, waits) = table.enters(Wait::Forever);
    drop(table.leaves(asks, EntryRole::Tries));
    assert_eq!(table.enters(zero).0, Admission::IsBusy);
    drop(table.leaves(waits, EntryRole::Waits));
    let (held, _) = table.holds(&KEY);
    assert_eq!(table.enters(zero).0, Admission::IsBusy);
    drop(table.leaves(held, EntryRole::Holds));
    assert_eq!(table.enters(zero).0, Admission::Tries);
}

#[test]
fn the_end_of_a_try_is_noted_once_and_only_where_it_is_awaited() {
    let table = Table::default();
    let awaits = |at| table.change(at, |entries| entries.awaits_try(&LINE, tokio_time()));
    let (_, first) = table.enters(Wait::Never);
    let (_, second) = table.enters(Wait::Never);
    let (_, third) = table.enters(Wait::Never);
    assert_eq!(table.leaves(first, EntryRole::Tries).awaited, None);
    let (_, waits) = table.enters(Wait::Forever);
    assert!(awaits(waits));
    assert_eq!(table.leaves(second, EntryRole::Tries).awaited, Some(LINE));
    assert_eq!(table.leaves(third, EntryRole::Tries).awaited, None);
    assert!(!awaits(waits), "no call asks any more");
}

#[test]
fn nothing_is_awaited_behind_a_holder() {
    let table = Table::default();
    let (_held, _) = table.holds(&KEY);
    let (_, waits) = table.enters(Wait::Forever);
    let awaits = table.change(waits, |entries| {
        entries.trying += 1;
        entries.awaits_try(&LINE, tokio_time())
    });
    assert!(!awaits);
}

#[test]
fn a_crowd_that_has_gone_leaves_no_capacity() {
    let table = Table::default();
    let key = |n: u32| LockKey::new(n.to_string()).unwrap();
    let all: Vec<_> =
        (0..10_000).map(|n| table.enter(&key(n), Wait::Never, tokio_time()).1).collect();
    for at in all {
        table.leaves(at, EntryRole::Tries);
    }
    for part in &table.parts {
        assert!(part.0.lock().of_keys.capacity() < 4 * SPARE);
    }
}
