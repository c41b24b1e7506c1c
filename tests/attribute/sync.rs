//! Sync functions: everywhere they can be called, and what is theirs alone.

use std::thread;
use std::time::Duration;

use lockable_runtime::{Lease, LockError, LockKey, Locker, distributed_lock};
use rstest::rstest;

use crate::support::{Caller, Journal, ShopError, hold, is_free, locker_now, now};

#[distributed_lock(key = "order:{id}", locker = locks)]
fn settle(locks: &Locker, id: u64) -> Option<u64> {
    assert!(!is_free(locks, "order:7"), "runs without its lock");
    Some(id)
}

/// The second call finds the lock free again.
#[rstest]
fn a_sync_function_is_locked_wherever_it_is_called(
    #[values(Caller::NoRuntime, Caller::OneThread, Caller::Worker, Caller::BlockingThread)]
    caller: Caller,
) {
    caller.run(|| {
        let locks = locker_now();
        for _ in 0..2 {
            assert_eq!(settle(&locks, 7), Some(7));
            assert!(is_free(&locks, "order:7"));
        }
        let _other = now(hold(&locks, "order:7"));
        assert_eq!(settle(&locks, 7), None);
    });
}

#[distributed_lock(key = "k", locker = locker_now(), guard = lock)]
#[test]
fn a_test_runs_under_its_lock() {
    assert!(lock.is_held());
}

#[test]
#[distributed_lock(key = "k", locker = locker_now(), guard = lock)]
fn a_test_locks_below_its_attribute_too() -> Result<(), LockError> {
    assert!(lock.is_held());
    Ok(())
}

/// A body counts in two steps, which another one between them would upset. A lock that was waited for is held for a
/// second at first, which a busy machine may take from the body.
fn count(lock: &Lease, journal: &Journal) {
    let before = journal.entries().len();
    thread::yield_now();
    journal.write("ran");
    assert!(journal.entries().len() == before + 1 || !lock.is_held(), "two bodies at once");
}

#[distributed_lock(key = "k", locker = locks, guard = lock)]
fn tries(locks: &Locker, journal: &Journal) -> Option<()> {
    count(&lock, journal);
    Some(())
}

#[distributed_lock(key = "k", locker = locks, wait, guard = lock)]
fn waits(locks: &Locker, journal: &Journal) -> Option<()> {
    count(&lock, journal);
    Some(())
}

/// Goal: of many calls at once, one body runs at a time. Method: threads that try until they have the lock, and others
/// that wait for it.
#[test]
fn bodies_with_one_key_exclude_each_other() {
    let (locks, journal) = (locker_now(), Journal::default());
    thread::scope(|scope| {
        for call in [tries, waits].repeat(4) {
            let (locks, journal) = (&locks, &journal);
            scope.spawn(move || {
                for _ in 0..20 {
                    while call(locks, journal).is_none() {
                        thread::yield_now();
                    }
                }
            });
        }
    });
    assert!(journal.entries().len() >= 160);
    assert!(is_free(&locks, "k"));
}

#[test]
fn every_option_works() {
    const KEY: LockKey = LockKey::from_static("k");

    #[distributed_lock(key = KEY, prefix = "p:", expire = Duration::from_secs(3), locker = locks, guard = lock,
        on_busy = name.len(), on_error = |err: LockError| if err.is_busy() { 1 } else { 2 })]
    fn call(locks: &Locker, name: String) -> usize {
        assert!(lock.is_held() && lock.remaining() <= Duration::from_secs(3));
        assert_eq!((lock.key().as_str(), u64::from(lock.fencing_token()) > 0), ("p:k", true));
        drop(name);
        7
    }
    #[distributed_lock(key = "k", locker = locks, prefix = "p:", on_busy = skip)]
    fn skips(locks: &Locker) -> Result<Option<u8>, ShopError> {
        Ok(Some(7))
    }
    #[distributed_lock(key = "{id}", on_busy = 1, on_error = |_| 2, locker = locks)]
    fn cannot(locks: &Locker, id: &str) -> u8 {
        unreachable!("runs with an empty key")
    }
    let locks = locker_now();
    assert_eq!(call(&locks, "four".to_owned()), 7);
    assert_eq!(skips(&locks).unwrap(), Some(7));
    assert_eq!(cannot(&locks, ""), 2);
    let other = Locker::builder().url("memory://every-option").prefix("p:").connect_lazy().unwrap();
    let _held = now(hold(&other, "k"));
    assert_eq!(call(&other, "four".to_owned()), 4);
    assert_eq!(skips(&other).unwrap(), None);
}

#[test]
fn functions_with_another_abi_are_locked() {
    #[distributed_lock(key = "k", locker = locks)]
    extern "C" fn c(locks: &Locker, looked: &mut bool) {
        *looked = !is_free(locks, "k");
    }
    let (locks, mut looked) = (locker_now(), false);
    let pointer: extern "C" fn(&Locker, &mut bool) = c;
    pointer(&locks, &mut looked);
    assert!(looked && is_free(&locks, "k"));
}
