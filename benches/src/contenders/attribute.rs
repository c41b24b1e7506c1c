//! This crate, by its attribute.

use lockable_runtime::{LockError, Locker, distributed_lock};

use super::{Order, Ours};
use crate::worker::Contender;

/// One call does both: to acquire is the whole pair.
#[derive(Debug, Clone)]
pub struct Attribute(Locker);

impl Attribute {
    /// One locker.
    pub async fn connect(url: &str) -> Self {
        Self(Ours::connect(url, Order::Once).await.locker)
    }
}

impl Contender for Attribute {
    type Held = ();

    async fn acquire(&mut self, key: &str) {
        locked(&self.0, key).await.expect("a free lock");
    }

    async fn release(&mut self, _key: &str, (): ()) {}
}

#[distributed_lock(key = "{key}", locker = locker)]
async fn locked(locker: &Locker, key: &str) -> Result<(), LockError> {
    Ok(())
}
