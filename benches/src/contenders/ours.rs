//! This crate.

use lockable_runtime::{LockGuard, Locker};

use crate::worker::Contender;

/// In which order those who wait are served.
#[derive(Debug, Clone, Copy)]
pub enum Order {
    /// As the locker has it.
    Default,
    /// First come, first served.
    Fair,
}

/// One locker with its defaults for the process.
#[derive(Debug, Clone)]
pub struct Ours {
    locker: Locker,
    order: Order,
}

impl Ours {
    /// One locker.
    pub async fn connect(url: &str, order: Order) -> Self {
        Self { locker: Locker::connect(url).await.expect("a locker"), order }
    }
}

impl Contender for Ours {
    type Held = LockGuard;

    async fn acquire(&mut self, key: &str) -> LockGuard {
        let request = self.locker.lock(key);
        let request = match self.order {
            Order::Default => request,
            Order::Fair => request.fair(),
        };
        request.acquire().await.expect("a lock")
    }

    async fn release(&mut self, _key: &str, held: LockGuard) {
        held.release().await.expect("released");
    }
}
