//! A call's future: never polled, dropped while it runs, run side by side.

use std::sync::atomic::{AtomicU32, Ordering};

use lockable_runtime::__internals::MemoryStore;
use lockable_runtime::{Locker, distributed_lock};
use tokio::sync::Barrier;

use crate::support::{Journal, is_free, locker, locker_now, pause, start_and_drop};

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
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
    assert!(is_free(&locks, "k"));
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
    let locks = locker_now();
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

#[tokio::test(start_paused = true)]
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
