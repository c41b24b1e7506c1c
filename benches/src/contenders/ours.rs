//! This crate.

use lockable_runtime::{LockGuard, LockSet, Locker};

use super::DEADLINE;
use crate::worker::Contender;

/// Whether a call waits, and in which order those who wait are served.
#[derive(Debug, Clone, Copy)]
pub enum Order {
    /// As the locker has it.
    Default,
    /// One try.
    Once,
    /// First come, first served.
    Fair,
}

/// One locker for the process, with its defaults but for the deadlines.
#[derive(Debug, Clone)]
pub struct Ours {
    pub(super) locker: Locker,
    order: Order,
}

impl Ours {
    /// One locker.
    pub async fn connect(url: &str, order: Order) -> Self {
        let locker =
            Locker::builder().url(url).connect_deadline(DEADLINE).command_deadline(DEADLINE);
        Self { locker: locker.connect().await.expect("a locker"), order }
    }
}

impl Contender for Ours {
    type Held = LockGuard;

    async fn acquire(&mut self, key: &str) -> LockGuard {
        let request = self.locker.lock(key);
        match self.order {
            Order::Default => request.acquire().await.expect("a lock"),
            Order::Once => request.try_acquire().await.expect("a free lock"),
            Order::Fair => request.fair().acquire().await.expect("a lock"),
        }
    }

    async fn release(&mut self, _key: &str, held: LockGuard) {
        held.release().await.expect("released");
    }
}

/// One of three permits of each key.
#[derive(Debug, Clone)]
pub struct OnePermit(pub Ours);

impl Contender for OnePermit {
    type Held = LockGuard;

    async fn acquire(&mut self, key: &str) -> LockGuard {
        let request = self.0.locker.lock(key).permits(3);
        request.try_acquire().await.expect("a free permit")
    }

    async fn release(&mut self, key: &str, held: LockGuard) {
        self.0.release(key, held).await;
    }
}

/// Two locks for each key, in one call that may wait: it tries both at the same time.
#[derive(Debug, Clone)]
pub struct TwoKeys(pub Ours);

impl Contender for TwoKeys {
    type Held = LockSet;

    async fn acquire(&mut self, key: &str) -> LockSet {
        let other = format!("{key}:other");
        self.0.locker.lock_all([key, &other]).acquire().await.expect("both locks")
    }

    async fn release(&mut self, _key: &str, held: LockSet) {
        held.release().await.expect("released");
    }
}
