//! What operators ask Redis for: plain commands, of which each is short.
//!
//! See "How are a million keys listed without slowing anyone?" in DESIGN.md.

use std::time::Duration;

use super::Redis;
use crate::backend::{Administration, Client, Page, Queued, Reply, Seen};
use crate::types::key::LockKey;
use crate::types::selection::Selection;

mod call;
mod clients;
mod look;
mod queue;
mod sweep;

impl Administration for Redis {
    fn sweep(&self, selection: Selection) -> Reply<Page> {
        Box::pin(sweep::begin(self.servers.clone(), selection))
    }

    fn look(&self, key: LockKey) -> Reply<Option<Seen>> {
        let servers = self.servers.clone();
        Box::pin(async move { look::look(&servers, key).await })
    }

    fn queue(&self, key: LockKey) -> Reply<Vec<Queued>> {
        let servers = self.servers.clone();
        Box::pin(async move { queue::queue(&servers, &key).await })
    }

    fn clients(&self) -> Reply<Vec<Client>> {
        let servers = self.servers.clone();
        Box::pin(async move { clients::clients(&servers).await })
    }

    fn clock_difference(&self) -> Reply<Option<Duration>> {
        let servers = self.servers.clone();
        Box::pin(async move { clients::clock_difference(&servers).await.map(Some) })
    }

    fn size(&self) -> Reply<u64> {
        let servers = self.servers.clone();
        Box::pin(async move { clients::size(&servers).await })
    }
}
