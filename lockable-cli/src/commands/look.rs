//! One look at one lock, with everything that is shown of it.

use std::time::Duration;

use lockable_runtime::LockError;
use lockable_runtime::admin::{Admin, HeldLock, Waiter};

use crate::directory::Directory;

use crate::output::facts::Facts;

pub(super) struct Look {
    pub(super) held: HeldLock,
    pub(super) queue: Vec<Waiter>,
    pub(super) directory: Directory,
    pub(super) clocks: Option<Duration>,
}

impl Look {
    /// `None` where no one has the lock.
    pub(super) async fn at(admin: &Admin, key: &str) -> Result<Option<Self>, LockError> {
        let Some(held) = admin.holder(key).await? else { return Ok(None) };
        let (queue, directory) = (admin.queue(key).await?, Directory::of(admin).await);
        // A server that does not say its time is no failure.
        let clocks = admin.clock_difference().await.ok().flatten();
        Ok(Some(Self { held, queue, directory, clocks }))
    }

    pub(super) fn facts(&self) -> Facts<'_> {
        let Self { held, queue, directory, clocks } = self;
        Facts { held, queue, directory, clocks: *clocks }
    }
}
