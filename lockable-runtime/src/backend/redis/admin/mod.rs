//! What operators ask Redis for: plain commands, of which each is short.
//!
//! See "How does `SCAN` list a million locks without blocking Redis?" in DESIGN.md.

use std::time::Duration;

use tokio::sync::watch;

use super::Redis;
use crate::backend::{Administration, LockerConnection, Page, Queued, Reply, Seen};
use crate::types::key::LockKey;
use crate::types::selection::Selection;

mod call;
mod changes;
mod clients;
mod look;
mod queue;
mod revoking;
mod sweep;

impl Administration for Redis {
    fn sweep(&self, selection: Selection) -> Reply<Page> {
        Box::pin(sweep::begin(self.router.clone(), selection))
    }

    fn look(&self, key: LockKey) -> Reply<Option<Seen>> {
        let router = self.router.clone();
        Box::pin(async move { look::look(&router, key).await })
    }

    fn queue(&self, key: LockKey) -> Reply<Vec<Queued>> {
        let router = self.router.clone();
        Box::pin(async move { queue::queue(&router, &key).await })
    }

    fn changes(&self, key: LockKey) -> Reply<Option<watch::Receiver<()>>> {
        let router = self.router.clone();
        Box::pin(async move { changes::changes(&router, key).await })
    }

    fn clients(&self) -> Reply<Vec<LockerConnection>> {
        let router = self.router.clone();
        Box::pin(async move { clients::clients(&router).await })
    }

    fn clock_difference(&self) -> Reply<Option<Duration>> {
        let router = self.router.clone();
        Box::pin(async move { clients::clock_difference(&router).await.map(Some) })
    }

    fn size(&self) -> Reply<u64> {
        let router = self.router.clone();
        Box::pin(async move { clients::size(&router).await })
    }
}
