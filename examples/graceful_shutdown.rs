//! How does a service end so that no lock of it stays behind?
//!
//! It takes no new work, lets what runs end within a grace time, drops the rest, and waits for the
//! releases that are still in the background.
//!
//! In this folder, run it with `cargo run --example graceful_shutdown`, and press ctrl-c if you like; it sends
//! itself a SIGTERM after a moment, as an orchestrator would. Set `LOCKABLE_URL=redis://127.0.0.1:6379` to keep the
//! locks in Redis. Watch for the job that is dropped: its lock is free at the end.

use std::error::Error;
use std::time::Duration;

use lockable_runtime::{LockError, Locker, distributed_lock, install, lock_key};
use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::ctrl_c;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

/// Longer than a job takes that behaves; shorter than the orchestrator waits before its SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

#[distributed_lock(key = "job:{name}", expire = 30)]
async fn job(name: &str, takes: Duration) -> Result<(), LockError> {
    println!("{name}: begins");
    sleep(takes).await;
    println!("{name}: has ended");
    Ok(())
}

/// One job after the other, until asked to stop.
async fn work(
    name: &'static str,
    takes: Duration,
    stop: watch::Receiver<bool>,
) -> Result<(), LockError> {
    while !*stop.borrow() {
        job(name, takes).await?;
    }
    Ok(())
}

async fn asked_to_stop() -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async {
        sleep(Duration::from_millis(500)).await;
        kill_process(getpid(), Signal::TERM)
    });
    tokio::select! {
        outcome = ctrl_c() => outcome,
        _ = terminate.recv() => Ok(()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://".to_owned());
    let locks = Locker::connect(&url).await?;
    install(locks.clone())?;
    let (stop, stopped) = watch::channel(false);
    let mut jobs = JoinSet::new();
    jobs.spawn(work("short", Duration::from_millis(300), stopped.clone()));
    jobs.spawn(work("endless", Duration::MAX, stopped));

    asked_to_stop().await?;
    println!("asked to stop: nothing new begins");
    stop.send(true)?;
    let last_moment = Instant::now() + GRACE;
    while let Ok(Some(ended)) = timeout_at(last_moment, jobs.join_next()).await {
        ended??;
    }
    println!("not ended in time, and dropped: {}", jobs.len());
    assert_eq!(jobs.len(), 1);
    // Waits until they are dropped, too: until then they hold their locks.
    jobs.shutdown().await;

    // A dropped body's lock is released in the background, which the end of the process would cut off.
    lockable_runtime::shutdown(Duration::from_secs(5)).await?;

    for name in ["short", "endless"] {
        assert!(locks.inspect(lock_key!("job:{name}")?).await?.is_none());
        println!("the lock of {name} is free");
    }
    Ok(())
}
