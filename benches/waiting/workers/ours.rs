//! This crate.

use lockable_benches::worker::{Contender, Waiter};
use lockable_runtime::{LockGuard, Locker};

/// In which order those who wait are served.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    Default,
    Fair,
}

/// One locker with its defaults for the process.
pub(super) async fn contender(url: &str, order: Order) -> Ours {
    Ours { locker: Locker::connect(url).await.expect("a locker"), order }
}

pub(super) struct Ours {
    locker: Locker,
    order: Order,
}

pub(super) struct Locking {
    locker: Locker,
    order: Order,
    key: String,
    held: Option<LockGuard>,
}

impl Contender for Ours {
    type Waiter = Locking;

    fn waiter(&self, key: String) -> Locking {
        Locking { locker: self.locker.clone(), order: self.order, key, held: None }
    }
}

impl Waiter for Locking {
    async fn acquire(&mut self) {
        self.held = Some(wait(&self.locker, self.order, &self.key).await);
    }

    async fn release(&mut self) {
        self.held.take().expect("held").release().await.expect("released");
    }
}

async fn wait(locker: &Locker, order: Order, key: &str) -> LockGuard {
    let request = locker.lock(key);
    let request = match order {
        Order::Default => request,
        Order::Fair => request.fair(),
    };
    request.acquire().await.expect("a lock")
}
