//! Who has which lock, who waits, and which processes there are.

use std::collections::BTreeMap;

use lockable_runtime::Locker;
use lockable_runtime::admin::{HeldLock, Locks};

mod claims;
mod many;
mod nodes;
mod rights;
mod servers;

/// All that is listed; the names, each of which is listed once.
async fn all(mut locks: Locks) -> BTreeMap<String, HeldLock> {
    let mut found = BTreeMap::new();
    while let Some(lock) = locks.next().await.transpose().unwrap() {
        let twice = found.insert(lock.name().to_owned(), lock);
        assert!(twice.is_none(), "{twice:?} is listed twice");
    }
    found
}

async fn names(locker: &Locker) -> Vec<String> {
    all(locker.admin().locks()).await.into_keys().collect()
}
