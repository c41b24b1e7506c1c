//! How do I skip work that another caller is doing already, and see in the log that it was skipped?
//!
//! One attribute on a function: of several callers at once, one runs and the others are skipped.
//!
//! In this folder, run it with `cargo run --example annotation`; set `LOCKABLE_URL=redis://127.0.0.1:6379` to keep
//! the lock in Redis. Watch for one `start` and `end` in each round, and for the info events of the skipped calls.

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
        let callers: JoinSet<Option<u32>> = (1..=5).map(work).collect();
        let ran: Vec<u32> = callers.join_all().await.into_iter().flatten().collect();
        println!("round {round}: caller {ran:?} ran, the others were skipped");
        assert_eq!(ran.len(), 1);
    }
    Ok(())
}
