//! A snapshot of one lock, with everything that is shown of it.

use std::time::Duration;

use lockable_runtime::LockError;
use lockable_runtime::admin::{Admin, HeldLock, Waiter};

use crate::process_index::ProcessIndex;

use crate::output::facts::Facts;

pub(super) struct Snapshot {
    pub(super) held: HeldLock,
    pub(super) queue: Vec<Waiter>,
    pub(super) process_index: ProcessIndex,
    pub(super) clocks: Option<Duration>,
}

impl Snapshot {
    /// `None` where no one has the lock.
    pub(super) async fn at(admin: &Admin, key: &str) -> Result<Option<Self>, LockError> {
        let Some(held) = admin.holder(key).await? else { return Ok(None) };
        let (queue, process_index) = (admin.queue(key).await?, ProcessIndex::of(admin).await);
        // A server that does not say its time is no failure.
        let clocks = admin.clock_difference().await.ok().flatten();
        Ok(Some(Self { held, queue, process_index, clocks }))
    }

    pub(super) fn facts(&self) -> Facts<'_> {
        let Self { held, queue, process_index, clocks } = self;
        Facts { held, queue, process_index, clocks: *clocks }
    }
}
