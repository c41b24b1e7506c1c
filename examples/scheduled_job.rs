//! How does a job that every replica triggers run once a tick, although their clocks differ?
//!
//! The key names the tick, and `min_hold` keeps the lock taken after the job has ended, for longer
//! than the clocks differ: a replica that is late finds it busy, not free again.
//!
//! Run it with `cargo run --example scheduled_job`; set `LOCKABLE_URL=redis://127.0.0.1:6379` to keep
//! the lock in Redis. Watch for one report a tick, and for the replicas that come too late for it.

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lockable_runtime::{LockError, Locker, distributed_lock};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// One each second.
const TICKS: u64 = 3;

/// How often the job ran.
static REPORTS: AtomicU32 = AtomicU32::new(0);

/// One replica of the service.
struct Replica {
    name: &'static str,
    locks: Locker,
    /// How much its clock is behind.
    behind: Duration,
}

impl Replica {
    /// Takes a millisecond only, and runs once a tick all the same.
    #[distributed_lock(key = "report:{tick}", expire = 10, min_hold = 5, locker = self.locks)]
    async fn report(&self, tick: u64) -> Result<(), LockError> {
        tokio::time::sleep(Duration::from_millis(1)).await;
        REPORTS.fetch_add(1, Ordering::Relaxed);
        println!("tick {tick}: {} reports", self.name);
        Ok(())
    }

    /// Triggers the job at each tick, by its own clock; gives how often another had run it.
    async fn schedule(self, first: u64, start: Instant) -> Result<u32, LockError> {
        let mut skipped = 0;
        for (tick, after) in (first..first + TICKS).zip(0..) {
            sleep_until(start + Duration::from_secs(after) + self.behind).await;
            match self.report(tick).await {
                Err(error) if error.is_busy() => skipped += 1,
                outcome => outcome?,
            }
        }
        Ok(skipped)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://jobs".to_owned());
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let first = now.as_secs() + 1;
    let start = Instant::now() + Duration::from_secs(first).saturating_sub(now);
    let mut replicas = JoinSet::new();
    for (name, behind) in [("replica a", 0), ("replica b", 50), ("replica c", 100)] {
        let (locks, behind) = (Locker::connect(&url).await?, Duration::from_millis(behind));
        replicas.spawn(Replica { name, locks, behind }.schedule(first, start));
    }
    let mut skipped = 0;
    while let Some(outcome) = replicas.join_next().await {
        skipped += outcome??;
    }
    let reports = REPORTS.load(Ordering::Relaxed);
    println!("{TICKS} ticks, {reports} reports, {skipped} skipped");
    assert_eq!((u64::from(reports), u64::from(skipped)), (TICKS, 2 * TICKS));
    Ok(())
}
