//! `distributed-lock` with its Redis backend: `acquire` tries once, whatever its time limit.

use std::sync::Arc;
use std::time::Duration;

use distributed_lock_core::error::LockError;
use distributed_lock_core::traits::{DistributedLock, LockHandle, LockProvider};
use distributed_lock_redis::{RedisLockHandle, RedisLockProvider};
use rand::random_range;

use crate::worker::Contender;

/// One provider with one connection for the process.
pub async fn contender(url: &str) -> Provider {
    Provider(Arc::new(RedisLockProvider::new(url).await.expect("a connection")))
}

#[derive(Clone)]
pub struct Provider(Arc<RedisLockProvider>);

impl Contender for Provider {
    type Held = RedisLockHandle;

    /// An object a section, because two acquisitions of one object cannot be distinguished.
    async fn acquire(&mut self, key: &str) -> RedisLockHandle {
        let lock = self.0.create_lock(key);
        loop {
            match lock.acquire(None).await {
                Ok(handle) => return handle,
                Err(LockError::Timeout(_)) => pause().await,
                Err(error) => panic!("{error}"),
            }
        }
    }

    async fn release(&mut self, _key: &str, held: RedisLockHandle) {
        held.release().await.expect("released");
    }
}

/// It has no pause of its own, so it gets the one of `rslock`.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(random_range(0..200))).await;
}
