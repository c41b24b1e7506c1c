//! `rslock`: `acquire` tries for ever, with a pause of up to 200 ms after each failure.

use rslock::{LockGuard, LockManager};

use crate::LEASE;
use crate::worker::Contender;

/// One manager with one connection for the process, as its documentation has it.
pub fn contender(url: &str) -> Manager {
    Manager(LockManager::new(vec![url]))
}

#[derive(Clone)]
pub struct Manager(LockManager);

impl Contender for Manager {
    type Held = LockGuard;

    async fn acquire(&mut self, key: &str) -> LockGuard {
        self.0.acquire(key, LEASE).await.expect("a lock")
    }

    async fn release(&mut self, _key: &str, held: LockGuard) {
        held.release().await;
    }
}
