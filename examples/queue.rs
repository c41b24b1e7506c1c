//! Waiting in a queue, beside trying again and again: two thousand requests, a hundred at a time,
//! come to fifty instances of a shop and take from a stock of two thousand while more than ten are
//! left.
//!
//! Run it with `cargo run --release --example queue`; set `LOCKABLE_URL=redis://127.0.0.1:6379` to
//! keep the locks in Redis. Watch the retries and the time: the stock ends at ten either way.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lockable_runtime::{LockError, Locker};
use tokio::task::JoinSet;

const INSTANCES: usize = 50;
const AT_A_TIME: usize = 100;
const REQUESTS: usize = 2_000;
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Counts {
    stock: AtomicU32,
    requests: AtomicU32,
    retries: AtomicU32,
    failures: AtomicU32,
}

/// Waits for its turn, which comes without a retry.
async fn queued(locks: &Locker, counts: &Counts) -> Result<(), LockError> {
    locks.lock("stock").wait(PATIENCE).run(take_one(counts)).await
}

/// Tries until it finds the lock free, as clients without a queue do.
async fn spinning(locks: &Locker, counts: &Counts) -> Result<(), LockError> {
    let end = Instant::now() + PATIENCE;
    loop {
        match locks.lock("stock").run(take_one(counts)).await {
            Err(error) if error.is_contended() && Instant::now() < end => {
                counts.retries.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            outcome => return outcome,
        }
    }
}

/// Reads the row, changes it and writes it back.
async fn take_one(counts: &Counts) {
    let stock = counts.stock.load(Ordering::Relaxed);
    if stock > 10 {
        tokio::task::yield_now().await;
        counts.stock.store(stock - 1, Ordering::Relaxed);
    }
}

async fn load(instances: &[Locker], is_queued: bool) {
    let counts = Arc::new(Counts { stock: AtomicU32::new(2_000), ..Counts::default() });
    let start = Instant::now();
    let mut work = JoinSet::new();
    for task in 0..AT_A_TIME {
        let (locks, counts) = (instances[task % INSTANCES].clone(), Arc::clone(&counts));
        work.spawn(async move {
            for _ in 0..REQUESTS / AT_A_TIME {
                let outcome = if is_queued {
                    queued(&locks, &counts).await
                } else {
                    spinning(&locks, &counts).await
                };
                counts.requests.fetch_add(1, Ordering::Relaxed);
                counts.failures.fetch_add(u32::from(outcome.is_err()), Ordering::Relaxed);
            }
        });
    }
    work.join_all().await;
    let name = if is_queued { "queued" } else { "spinning" };
    let count = |counter: &AtomicU32| counter.load(Ordering::Relaxed);
    println!(
        "{name:>8}: stock {:4}, requests {}, retries {:6}, failures {}, {:.2?}",
        count(&counts.stock),
        count(&counts.requests),
        count(&counts.retries),
        count(&counts.failures),
        start.elapsed()
    );
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://queue".to_owned());
    let mut instances = Vec::new();
    for _ in 0..INSTANCES {
        instances.push(Locker::connect(&url).await?);
    }
    load(&instances, true).await;
    load(&instances, false).await;
    lockable_runtime::shutdown(Duration::from_secs(5)).await?;
    Ok(())
}
