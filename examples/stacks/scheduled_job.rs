//! How does a job that every replica triggers run once each time, although the replicas' clocks differ?
//!
//! The scheduler is `apalis-cron`, which passes the fire time to the job. The key contains the fire time, so
//! each firing has a lock of its own. `min_hold` keeps that lock taken after a short job has ended, for
//! longer than the clocks differ: a replica that is late finds it busy, and not free again.
//!
//! `tokio-cron-scheduler` passes no fire time. There the key contains the current time, rounded down to the
//! period of the schedule: the date, for a job that runs once a day.
//!
//! In this folder, run it with `cargo run --bin scheduled_job`; set `LOCKABLE_URL=redis://127.0.0.1:6379` to
//! keep the locks in Redis. Watch for one report each second, whichever replica makes it.

// Sources: https://docs.rs/apalis-cron/1.0.0/apalis_cron/struct.Tick.html and, for the arguments of a job,
// https://docs.rs/tokio-cron-scheduler/0.15.1/tokio_cron_scheduler/type.JobToRunAsync.html

use std::collections::BTreeSet;
use std::error::Error;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use apalis::prelude::{BoxDynError, Data, WorkerBuilder, WorkerContext};
use apalis_cron::{CronScheduler, Tick};
use cron::Schedule;
use lockable_runtime::{LockError, Locker, distributed_lock};
use tokio::task::JoinSet;

/// The fire times of the reports.
static REPORTS: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());
static TRIGGERED: AtomicUsize = AtomicUsize::new(0);
static SKIPPED: AtomicUsize = AtomicUsize::new(0);

/// One replica of the service.
#[derive(Clone)]
struct Replica {
    name: &'static str,
    locks: Locker,
    /// How much its clock is behind.
    behind: Duration,
    /// The fire time at which it ends.
    end: u64,
}

/// Ends at once, and runs once each time all the same.
#[distributed_lock(
    key("report:{}", tick.get_timestamp()),
    expire = 10, min_hold = 5, locker = replica.locks
)]
async fn report(tick: Tick, replica: Data<Replica>) -> Result<(), LockError> {
    let is_first = REPORTS.lock().expect("not poisoned").insert(tick.get_timestamp());
    assert!(is_first, "a report was made twice");
    println!("fire time {}: {} reports", tick.get_timestamp(), replica.name);
    Ok(())
}

/// What the worker runs. With `on_busy = skip` it could be `report` itself: here, skipped calls are counted.
async fn on_tick(
    tick: Tick,
    replica: Data<Replica>,
    worker: WorkerContext,
) -> Result<(), BoxDynError> {
    if tick.get_timestamp() >= replica.end {
        return Ok(worker.stop()?);
    }
    TRIGGERED.fetch_add(1, Ordering::Relaxed);
    tokio::time::sleep(replica.behind).await;
    match report(tick, replica).await {
        Err(error) if error.is_busy() => SKIPPED.fetch_add(1, Ordering::Relaxed),
        outcome => return Ok(outcome?),
    };
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://jobs".to_owned());
    let end = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() + 4;
    let mut workers = JoinSet::new();
    for (name, behind) in [("replica a", 0), ("replica b", 50), ("replica c", 100)] {
        let (locks, behind) = (Locker::connect(&url).await?, Duration::from_millis(behind));
        // Each second; `0 0 3 * * *` is three o'clock each night.
        let schedule = CronScheduler::new(Schedule::from_str("* * * * * *")?);
        let worker = WorkerBuilder::new(name).backend(schedule);
        let worker = worker.data(Replica { name, locks, behind, end });
        workers.spawn(worker.build(on_tick).run());
    }
    while let Some(outcome) = workers.join_next().await {
        outcome??;
    }
    let reports = REPORTS.lock().expect("not poisoned").len();
    let (triggered, skipped) = (TRIGGERED.load(Ordering::Relaxed), SKIPPED.load(Ordering::Relaxed));
    println!("{triggered} calls: {reports} reports, {skipped} skipped");
    assert!(reports > 0 && skipped > 0);
    assert_eq!(reports + skipped, triggered, "a call failed");
    Ok(())
}
