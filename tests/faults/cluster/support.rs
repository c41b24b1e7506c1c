//! What the tests share: the load, which part of it a master has, and what is left.

use std::collections::HashSet;
use std::time::Duration;

use lockable_tests::cluster::slot;
use lockable_tests::{Cluster, Server};
use tokio::sync::{Mutex, MutexGuard};

use crate::load::Crowd;
use crate::sections::is_clean;

pub(super) const CROWD: Crowd =
    Crowd { holders: 100, lease: Duration::from_secs(10), waiters: 200, lines: 20, tasks: 64 };

/// For the tests that need a crowd: two of them at the same time would measure each other.
pub(super) async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    ALONE.lock().await
}

/// The locks whose slots a master has at the moment.
pub(super) struct Shard(HashSet<u16>);

impl Shard {
    pub(super) fn of(cluster: &Cluster, master: &Server) -> Self {
        Self(cluster.slots_of(master).into_iter().collect())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains(&slot(name))
    }
}

/// Nothing is left at any master.
pub(super) async fn is_clean_everywhere(cluster: &Cluster) {
    for master in cluster.masters() {
        is_clean(master).await;
    }
}
