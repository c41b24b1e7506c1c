//! How is a report written once a month, and again only if it failed?
//!
//! With `once` a call that ended well leaves its lock done: no other call of that key runs its body until the
//! period is over. A call that failed leaves nothing behind.
//!
//! In this folder, run it with `cargo run --example monthly_report`; set `LOCKABLE_URL=redis://127.0.0.1:6379` to
//! keep the lock in Redis. Watch for the first report, which fails, and for the calls that wait for the second one.

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lockable_runtime::{LockError, Locker, distributed_lock};

static WRITTEN: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
enum ReportError {
    DiskFull,
    Lock(LockError),
}

impl From<LockError> for ReportError {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

/// In production `"40d"`: longer than any trigger may be late.
const PERIOD: Duration = Duration::from_secs(60);

/// The month is in the key, so each has a run of its own.
#[distributed_lock(key = "report:{month}", expire = 5, renew, wait = "30s", once = PERIOD, locker = locks)]
async fn report(locks: &Locker, month: &str, has_space: bool) -> Result<u32, ReportError> {
    tokio::time::sleep(Duration::from_millis(200)).await;
    if !has_space {
        return Err(ReportError::DiskFull);
    }
    Ok(WRITTEN.fetch_add(1, Ordering::Relaxed) + 1)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://reports".to_owned());
    // In production each is a process.
    let (one, other) = (Locker::connect(&url).await?, Locker::connect(&url).await?);
    // With a part that differs, so that the example can run again at once.
    let [month, next] =
        ["2026-11", "2026-12"].map(|month| format!("{month}-{}", std::process::id()));

    let failed = report(&one, &month, false).await;
    println!("the first run: {failed:?}");
    assert!(matches!(failed, Err(ReportError::DiskFull)));

    // Both are triggered: the second waits for the first, and then has nothing to do.
    let (first, second) = tokio::join!(report(&one, &month, true), report(&other, &month, true));
    let mut runs = [first, second];
    runs.sort_by_key(Result::is_err);
    let [Ok(1), Err(ReportError::Lock(done))] = runs else { panic!("{runs:?}") };
    println!("the other one: {done}");
    assert!(done.is_done());

    let Err(ReportError::Lock(again)) = report(&other, &month, true).await else {
        panic!("the report was written twice")
    };
    assert!(again.is_done() && WRITTEN.load(Ordering::Relaxed) == 1);

    // Another month is another run.
    assert!(report(&one, &next, true).await.is_ok());
    Ok(())
}
