//! `rslock`: `acquire` tries for ever, with a pause of up to 200 ms after each failure.

use rslock::{LockGuard, LockManager};

use crate::LEASE;
use crate::worker::{Contender, Waiter};

/// One manager with one connection for the process, as its documentation has it.
pub fn contender(url: &str) -> Manager {
    Manager(LockManager::new(vec![url]))
}

pub struct Manager(LockManager);

impl Contender for Manager {
    type Waiter = Locking;

    fn waiter(&self, key: String) -> Locking {
        Locking { manager: self.0.clone(), key, held: None }
    }
}

pub struct Locking {
    manager: LockManager,
    key: String,
    held: Option<LockGuard>,
}

impl Waiter for Locking {
    async fn acquire(&mut self) {
        self.held = Some(self.manager.acquire(&*self.key, LEASE).await.expect("a lock"));
    }

    async fn release(&mut self) {
        self.held.take().expect("held").release().await;
    }
}
