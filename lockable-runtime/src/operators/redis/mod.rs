//! The operators' requests to Redis: short plain commands.
//!
//! See "How does a listing or a watch spare the server (`SCAN`)?" in DESIGN.md.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::core::backend::{Environment, Release, Reply, Revocation};
use crate::core::types::id::ProcessId;
use crate::core::types::key::LockKey;
use crate::operators::check::Role;
use crate::operators::contract::{
    Audience, Checkup, LockerConnection, Operations, Page, Queued, Seen,
};
use crate::operators::selection::Selection;
use crate::redis::Redis;

mod call;
mod changes;
mod check;
mod clients;
mod look;
mod queue;
mod revoking;
mod sweep;

impl Operations for Redis {
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

    fn send(&self, revocation: Revocation) -> Reply<Audience> {
        Box::pin(revoking::send(self.clone(), revocation))
    }

    fn advance(&self, key: LockKey, process: ProcessId) -> Reply<bool> {
        let router = self.router.clone();
        Box::pin(async move { queue::advance(&router, &key, process).await })
    }

    fn force(&self, key: LockKey, owner: Vec<u8>) -> Reply<Release> {
        revoking::force(self, key, owner)
    }

    /// Runs on the background runtime, so that it cleans up even if its caller is dropped.
    fn check(&self, prefix: &str, role: Role) -> Checkup {
        let this = self.clone();
        let check = check::check(Arc::clone(self.topology()), prefix.to_owned(), role);
        let checked = self.topology().opener.timers.spawn(check);
        Box::pin(async move { checked.await.unwrap_or_else(|_| check::unchecked(this.name())) })
    }
}
