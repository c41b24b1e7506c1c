//! How does a job keep its lock for longer than `expire`, and what ends one that never ends?
//!
//! `renew` keeps the lease alive while the body runs; when `max_hold` is over, the body is stopped,
//! the lock is released, and the call says so.
//!
//! In this folder, run it with `cargo run --example long_job`; set `LOCKABLE_URL=redis://127.0.0.1:6379` to keep
//! the lock in Redis. Watch for the other instance, which finds the lock busy long after `expire`.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lockable_runtime::{LockError, Locker, distributed_lock};

const CHUNKS: u32 = 30;
const EXPIRE: Duration = Duration::from_secs(1);

/// One instance of the service.
#[derive(Clone)]
struct Export {
    locks: Locker,
    /// In place of the file that is written; what was written stays.
    chunks: Arc<AtomicU32>,
}

impl Export {
    /// Continues where the one before was stopped.
    #[distributed_lock(key = "export", expire = EXPIRE, renew, max_hold = 2, locker = self.locks)]
    async fn run(&self) -> Result<(), LockError> {
        for chunk in self.chunks.load(Ordering::Relaxed)..CHUNKS {
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.chunks.store(chunk + 1, Ordering::Relaxed);
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://export".to_owned());
    let chunks = Arc::new(AtomicU32::new(0));
    let export = Export { locks: Locker::connect(&url).await?, chunks: Arc::clone(&chunks) };
    let other = Export { locks: Locker::connect(&url).await?, chunks: Arc::clone(&chunks) };

    let start = Instant::now();
    let running = tokio::spawn(async move { export.run().await });
    tokio::time::sleep(EXPIRE + Duration::from_millis(200)).await;
    let busy = other.run().await.expect_err("the lease is renewed");
    println!("after {:.1?}, the other instance: {busy}", start.elapsed());
    assert!(busy.is_busy());

    let stopped = running.await?.expect_err("thirty chunks take longer than two seconds");
    let written = chunks.load(Ordering::Relaxed);
    println!("after {:.1?}, {written} of {CHUNKS} chunks: {stopped}", start.elapsed());
    assert!(stopped.is_max_hold_reached() && (1..CHUNKS).contains(&written));

    // Nothing of the stopped body runs any more, and its lock is free: the next call continues there.
    assert!(other.locks.inspect("export").await?.is_none());
    while let Err(error) = other.run().await {
        assert!(error.is_max_hold_reached(), "{error}");
    }
    let written = chunks.load(Ordering::Relaxed);
    println!("after {:.1?}, {written} of {CHUNKS} chunks: done", start.elapsed());
    assert_eq!(written, CHUNKS);
    Ok(())
}
