//! How does one of several replicas lead, and how does the rest of the process know?
//!
//! `lead` campaigns until its body returns or its future is dropped. `watch` gives a handle for a page of the process's
//! state; a readiness probe that is true for the leader alone would stop a rolling update.
//!
//! In this folder, run it with `cargo run --example leader`; set `LOCKABLE_URL=redis://127.0.0.1:6379` to keep the
//! lock in Redis. Watch for the second replica, which leads when the first one shuts down.

use std::error::Error;
use std::time::Duration;

use lockable_runtime::{Leadership, Leading, LockError, Locker};
use tokio::task::JoinHandle;

/// One replica of the service.
struct Replica {
    name: &'static str,
    /// What the handler of `/leader` looks at.
    probe: Leadership,
    campaigning: JoinHandle<Result<(), LockError>>,
}

impl Replica {
    async fn start(name: &'static str, url: &str) -> Result<Self, LockError> {
        let locks = Locker::connect(url).await?;
        let request = locks.lock("scheduler").expire(Duration::from_secs(5));
        let leading: Leading<()> = request.lead(move |lease| async move {
            println!("{name} leads, with the fencing token {}", lease.fencing_token());
            loop {
                // It schedules something, until its lease ends.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        let probe = leading.watch();
        Ok(Self { name, probe, campaigning: tokio::spawn(leading) })
    }

    /// The campaigns go on until then: their end would say why this replica never leads again.
    async fn leads(&mut self) {
        while !self.probe.is_leader() {
            tokio::select! {
                _ = self.probe.changed() => {}
                ended = &mut self.campaigning => panic!("the campaigns have ended: {ended:?}"),
            }
        }
    }

    /// Resigns: the body is dropped, then the lock is released.
    async fn shut_down(&self) -> Result<(), Box<dyn Error>> {
        println!("{} shuts down", self.name);
        self.campaigning.abort();
        Ok(lockable_runtime::shutdown(Duration::from_secs(5)).await?)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://leader".to_owned());
    let mut first = Replica::start("the first replica", &url).await?;
    first.leads().await;
    let mut second = Replica::start("the second replica", &url).await?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(first.probe.is_leader() && !second.probe.is_leader());

    first.shut_down().await?;
    second.leads().await;
    assert!(!first.probe.is_leader());
    second.shut_down().await
}
