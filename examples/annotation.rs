//! One attribute on a function: of several callers at once, one runs and the others are told that
//! they were skipped.
//!
//! Run it with `cargo run --example annotation`; set `LOCKABLE_URL=redis://127.0.0.1:6379` and
//! start it in two terminals to see the processes exclude each other. Watch for one `start` and
//! `end` at a time, and for the info events of the skipped calls.

use std::error::Error;
use std::time::Duration;

use lockable_runtime::{Locker, distributed_lock, install};
use tokio::task::JoinSet;

/// The key is `disLock:test`; if the process dies, it is free again after 10 seconds.
#[distributed_lock(key = "test", expire = 10)]
async fn work(caller: u32) -> Option<u32> {
    println!("caller {caller}: start");
    tokio::time::sleep(Duration::from_secs(2)).await;
    println!("caller {caller}: end");
    Some(caller)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_target(false).init();
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://".to_owned());
    install(Locker::connect(&url).await?)?;

    for round in 1..=2 {
        println!("round {round}: five callers at once");
        let mut callers = JoinSet::new();
        for caller in 1..=5 {
            callers.spawn(async move { (caller, work(caller).await) });
        }
        while let Some(outcome) = callers.join_next().await {
            if let (caller, None) = outcome? {
                println!("caller {caller}: skipped, the lock is busy");
            }
        }
    }
    Ok(())
}
