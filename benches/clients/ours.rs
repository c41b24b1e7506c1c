//! This crate as a contender: a process of this bench.

use std::time::Duration;

use lockable_benches::worker::{Flavour, run};
use lockable_runtime::{LockGuard, Locker};

use crate::load::{self, Client, DEADLINE, LEASE, Tags};

/// On the runtime that `#[tokio::main]` makes.
pub(crate) fn work(url: &str, tags: &Tags) {
    run(Flavour::MultiThread, async {
        let locker = Locker::builder().url(url).command_deadline(DEADLINE).expire(LEASE);
        let locker = locker.connect().await.expect("a locker");
        load::serve(Ours(locker), tags).await;
    });
}

/// One locker for the process, with its defaults but for the lease; the deadline is its default too.
#[derive(Clone)]
struct Ours(Locker);

impl Client for Ours {
    type Held = LockGuard;

    async fn acquire(&mut self, key: &str) -> Result<LockGuard, String> {
        let guard = self.0.lock(key).try_acquire().await;
        guard.map_err(|error| format!("{:?}", error.kind()))
    }

    async fn release(&mut self, _key: &str, held: LockGuard) -> Result<(), String> {
        held.release().await.map_err(|error| format!("{:?} at the release", error.kind()))
    }

    /// A lock whose call had no reply may still be granted later, so its releases go on until its lease ends: an error.
    /// What is held in truth is counted in the servers.
    async fn close(&self) {
        lockable_runtime::shutdown(SHUTDOWN).await.ok();
    }
}

/// As the documentation of `shutdown` has it.
const SHUTDOWN: Duration = Duration::from_secs(5);
