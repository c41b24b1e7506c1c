//! A call's future: never polled, dropped while it runs, run side by side.

use std::sync::atomic::{AtomicU32, Ordering};

use lockable_runtime::__internals::MemoryStore;
use lockable_runtime::{LockError, Locker, distributed_lock};
use tokio::sync::Barrier;

use crate::support::{Journal, ShopError, hold, is_free, locker, pause, start_and_drop};

#[tokio::test]
async fn a_future_that_is_never_polled_asks_for_nothing() {
    #[distributed_lock(key("{}", rendered(journal)), locker = locks)]
    async fn call(locks: &Locker, journal: &Journal) {
        journal.write("ran");
    }
    fn rendered(journal: &Journal) -> u8 {
        journal.write("rendered");
        7
    }
    let locks = Locker::connect("memory://never-polled").await.unwrap();
    let (store, journal) = (MemoryStore::open("never-polled").unwrap(), Journal::default());
    drop(call(&locks, &journal));
    assert!(journal.entries().is_empty());
    assert!(store.keyspace().is_empty());
    call(&locks, &journal).await;
    assert_eq!(journal.entries(), ["rendered", "ran"]);
    assert!(!store.keyspace().is_empty(), "the store shows no trace of any lock");
}

#[tokio::test]
async fn a_future_dropped_in_its_body_releases_last() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn call(locks: &Locker, journal: &Journal) {
        let _transaction = journal.drops("transaction").looking_at(locks, "k");
        pause().await;
        journal.write("completed");
    }
    let (locks, journal) = (locker().await, Journal::default());
    start_and_drop(call(&locks, &journal)).await;
    assert_eq!(journal.entries(), ["transaction when held"]);
    assert!(is_free(&locks, "k").await);
}

#[tokio::test]
async fn what_the_body_owns_is_dropped_before_every_release() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn call(locks: Locker, journal: Journal, way: u8) -> Result<u8, ShopError> {
        let _transaction = journal.drops("transaction").looking_at(&locks, "k");
        pause().await;
        if way == 2 {
            return Ok(8);
        }
        match way {
            0 => Ok(7),
            1 => Err(ShopError::SoldOut)?,
            _ => panic!("on purpose"),
        }
    }
    let (locks, journal) = (locker().await, Journal::default());
    for way in 0..4 {
        let ended = tokio::spawn(call(locks.clone(), journal.clone(), way)).await;
        assert_eq!(ended.is_err(), way == 3);
        assert!(is_free(&locks, "k").await);
    }
    assert_eq!(journal.entries(), ["transaction when held"; 4]);
}

/// Goal: of many calls at once, one body runs at a time. Method: every body looks around, with a
/// point to switch tasks in between; a busy call tries again until it ran.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn bodies_with_one_key_exclude_each_other() {
    static INSIDE: AtomicU32 = AtomicU32::new(0);

    #[distributed_lock(key = "k", locker = locks)]
    async fn call(locks: &Locker) -> Option<()> {
        assert_eq!(INSIDE.fetch_add(1, Ordering::SeqCst), 0, "two bodies at once");
        pause().await;
        INSIDE.fetch_sub(1, Ordering::SeqCst);
        Some(())
    }
    let locks = locker().await;
    let tasks: [_; 8] = std::array::from_fn(|_| {
        let locks = locks.clone();
        tokio::spawn(async move {
            for _ in 0..50 {
                while call(&locks).await.is_none() {
                    pause().await;
                }
            }
        })
    });
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn bodies_with_different_keys_run_side_by_side() {
    #[distributed_lock(key = "{id}", locker = locks)]
    async fn call(locks: &Locker, id: u8, both: &Barrier) -> Option<u8> {
        both.wait().await;
        Some(id)
    }
    let (locks, both) = (locker().await, Barrier::new(2));
    let outcome = tokio::join!(call(&locks, 1, &both), call(&locks, 2, &both));
    assert_eq!(outcome, (Some(1), Some(2)));
}

#[tokio::test]
async fn there_is_one_holder_at_a_time() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn call(locks: &Locker) -> Option<u8> {
        pause().await;
        Some(7)
    }
    let locks = locker().await;
    let (first, second) = tokio::join!(call(&locks), call(&locks));
    assert_eq!((first, second), (Some(7), None));
    assert_eq!(call(&locks).await, Some(7));
    drop(hold(&locks, "k").await);
    assert_eq!(call(&locks).await, Some(7));
}

/// A test that did not get its lock would fail: there is no quiet way out.
#[distributed_lock(key = "k", locker = locker().await, guard = lock)]
#[tokio::test]
async fn a_test_runs_under_its_lock() -> Result<(), LockError> {
    pause().await;
    assert!(lock.is_held());
    Ok(())
}

#[tokio::test]
async fn a_traced_function_is_locked_on_both_sides() {
    #[distributed_lock(key = "k", locker = locks)]
    #[tracing::instrument(skip(locks))]
    async fn above(locks: &Locker, id: u8) -> Option<u8> {
        assert!(!is_free(locks, "k").await);
        Some(id)
    }
    #[tracing::instrument(skip(locks))]
    #[distributed_lock(key = "k", locker = locks)]
    async fn below(locks: &Locker, id: u8) -> Option<u8> {
        assert!(!is_free(locks, "k").await);
        Some(id)
    }
    let locks = locker().await;
    assert_eq!((above(&locks, 7).await, below(&locks, 7).await), (Some(7), Some(7)));
    assert!(is_free(&locks, "k").await);
}
