//! What does waiting in a queue save, beside trying again and again?
//!
//! Four hundred requests, a hundred at a time, come to fifty instances of a shop and take from a
//! stock of four hundred while more than ten are left.
//!
//! In this folder, run it with `cargo run --example queue`; set `LOCKABLE_URL=redis://127.0.0.1:6379` to keep the
//! locks in Redis. Watch the retries and the time: the stock ends at ten either way.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lockable_runtime::{LockError, Locker};
use tokio::task::JoinSet;

const INSTANCES: usize = 50;
const AT_A_TIME: usize = 100;
const REQUESTS: usize = 400;
const STOCK: u32 = 400;
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Counts {
    stock: AtomicU32,
    requests: AtomicU32,
    retries: AtomicU32,
}

/// Waits for its turn, which comes without a retry.
async fn queued(locks: &Locker, counts: &Counts) -> Result<(), LockError> {
    locks.lock("stock").wait(PATIENCE).run(take_one(counts)).await
}

/// Tries until it finds the lock free, as clients without a queue do.
async fn spinning(locks: &Locker, counts: &Counts) -> Result<(), LockError> {
    let end = Instant::now() + PATIENCE;
    loop {
        match locks.lock("stock").try_run(take_one(counts)).await {
            Err(error) if error.is_busy() => {}
            outcome => return outcome,
        }
        assert!(Instant::now() < end, "no turn within {PATIENCE:?}");
        counts.retries.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Reads the row, changes it and writes it back.
async fn take_one(counts: &Counts) {
    let stock = counts.stock.load(Ordering::Relaxed);
    if stock > 10 {
        tokio::task::yield_now().await;
        counts.stock.store(stock - 1, Ordering::Relaxed);
    }
    counts.requests.fetch_add(1, Ordering::Relaxed);
}

/// Gives the number of retries that the load took.
async fn load(instances: &[Locker], is_queued: bool) -> Result<u32, Box<dyn Error>> {
    let counts = Arc::new(Counts { stock: AtomicU32::new(STOCK), ..Counts::default() });
    let start = Instant::now();
    let mut work = JoinSet::new();
    for locks in instances.iter().cycle().take(AT_A_TIME) {
        let (locks, counts) = (locks.clone(), Arc::clone(&counts));
        work.spawn(async move {
            for _ in 0..REQUESTS / AT_A_TIME {
                if is_queued {
                    queued(&locks, &counts).await?;
                } else {
                    spinning(&locks, &counts).await?;
                }
            }
            Ok::<_, LockError>(())
        });
    }
    while let Some(outcome) = work.join_next().await {
        outcome??;
    }
    let count = |counter: &AtomicU32| counter.load(Ordering::Relaxed);
    let (stock, requests) = (count(&counts.stock), count(&counts.requests));
    let (retries, took) = (count(&counts.retries), start.elapsed());
    let name = if is_queued { "queued" } else { "spinning" };
    println!("{name:>8}: {requests} requests, stock {stock}, {retries:6} retries, {took:.2?}");
    assert_eq!((requests, stock), (400, 10));
    Ok(retries)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://queue".to_owned());
    let mut instances = Vec::new();
    for _ in 0..INSTANCES {
        instances.push(Locker::connect(&url).await?);
    }
    assert_eq!(load(&instances, true).await?, 0);
    assert!(load(&instances, false).await? > 0);
    Ok(())
}
