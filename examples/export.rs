//! Exports may run three at a time, and a migration beside none of them: how?
//!
//! Three instances of a service export 15 reports each, under `permits = 3`. A migration of the table that they read
//! comes in between: it has all permits, so it waits until the exports before it are done, and later ones wait for it.
//!
//! In this folder, run it with `cargo run --example export`; set `LOCKABLE_URL=redis://127.0.0.1:6379` to keep the
//! locks in Redis. Watch that never more than three run, and that the migration is alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockable_runtime::{LockError, Locker, distributed_lock};
use tokio::task::JoinSet;

/// In place of a database: how many read it, and how many have at most at a time.
#[derive(Default)]
struct Table {
    readers: AtomicUsize,
    most: AtomicUsize,
    version: AtomicUsize,
}

#[derive(Clone)]
struct Service {
    locks: Locker,
    table: Arc<Table>,
}

impl Service {
    #[distributed_lock(key = "export", permits = 3, wait = "30s", renew, locker = self.locks)]
    async fn export(&self) -> Result<usize, LockError> {
        let readers = self.table.readers.fetch_add(1, Ordering::SeqCst) + 1;
        self.table.most.fetch_max(readers, Ordering::SeqCst);
        let version = self.table.version.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert_eq!(version, self.table.version.load(Ordering::SeqCst), "changed while it was read");
        self.table.readers.fetch_sub(1, Ordering::SeqCst);
        Ok(version)
    }

    /// The number is the one of the exports.
    #[distributed_lock(key = "export", permits = all(3), wait = "30s", renew, locker = self.locks)]
    async fn migrate(&self) -> Result<(), LockError> {
        assert_eq!(self.table.readers.load(Ordering::SeqCst), 0, "an export runs");
        tokio::time::sleep(Duration::from_millis(5)).await;
        self.table.version.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), LockError> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://export".to_owned());
    let table = Arc::new(Table::default());
    let with = |locks| Service { locks, table: Arc::clone(&table) };
    let mut exports = JoinSet::new();
    for _ in 0..3 {
        let service = with(Locker::connect(&url).await?);
        for _ in 0..3 {
            let service = service.clone();
            exports.spawn(async move {
                let mut versions = Vec::new();
                for _ in 0..5 {
                    versions.push(service.export().await?);
                }
                Ok::<_, LockError>(versions)
            });
        }
    }
    with(Locker::connect(&url).await?).migrate().await?;
    let versions = exports.join_all().await.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    let before = versions.iter().filter(|version| **version == 0).count();
    let most = table.most.load(Ordering::SeqCst);
    println!("{} exports, {most} at a time, {before} before the migration", versions.len());
    assert!(most <= 3 && table.version.load(Ordering::SeqCst) == 1);
    Ok(())
}
