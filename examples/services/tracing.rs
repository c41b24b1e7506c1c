//! What a lock logs through `tracing`: its spans and events, with the key, the key template and the function as
//! `lock` and `function`, the fencing token, and the times.
//!
//! In this folder, run it with `cargo run --example tracing`; set `LOCKABLE_URL=redis://127.0.0.1:6379` for Redis.
//! Watch for the body's own line inside of its span `hold`, for the second call's `waited`, and for the warning of
//! a body that used most of its lease. `cargo run --example tracing -- redact` redacts the keys.

use std::error::Error;
use std::time::Duration;

use lockable_runtime::{LockError, Locker, distributed_lock, install};
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::prelude::*;

/// Takes most of its lease, which is logged as a warning.
#[distributed_lock(key = "order:{order_id}", expire = "2s", wait = "5s")]
async fn settle(order_id: u64) -> Result<(), LockError> {
    tracing::info!(order_id, "settling");
    tokio::time::sleep(Duration::from_millis(1_700)).await;
    Ok(())
}

/// Long work under a short lease, which is renewed.
#[distributed_lock(key = "report:{day}", expire = "1s", renew)]
async fn report(day: &str) -> Result<(), LockError> {
    tokio::time::sleep(Duration::from_millis(500)).await;
    tracing::info!(day, "reported");
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // At info level there would be the warning alone; a service turns on what it looks for.
    let wanted = Targets::new().with_default(Level::INFO).with_target("lockable", Level::TRACE);
    let lines = tracing_subscriber::fmt::layer().with_span_events(FmtSpan::CLOSE);
    tracing_subscriber::registry().with(lines.with_filter(wanted)).init();

    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://".to_owned());
    let mut locker = Locker::builder().url(url).warn_waited_over(Duration::from_millis(200));
    if std::env::args().any(|argument| argument == "redact") {
        locker = locker.redact_keys();
    }
    install(locker.connect().await?)?;

    println!("two calls for one order at once:");
    tokio::try_join!(settle(7), settle(7))?;
    println!("a lease that is renewed:");
    report("monday").await?;
    Ok(())
}
