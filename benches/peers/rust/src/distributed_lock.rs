//! `distributed-lock` with its Redis backend: `acquire` tries once, whatever its time limit.

use std::time::Duration;

use distributed_lock_core::error::LockError;
use distributed_lock_core::traits::{DistributedLock, LockHandle, LockProvider};
use distributed_lock_redis::{RedisDistributedLock, RedisLockHandle, RedisLockProvider};
use rand::random_range;

use crate::worker::{Contender, Waiter};

/// One provider with one connection for the process.
pub async fn contender(url: &str) -> Provider {
    Provider(RedisLockProvider::new(url).await.expect("a connection"))
}

pub struct Provider(RedisLockProvider);

impl Contender for Provider {
    type Waiter = Locking;

    /// An object a waiter, because two acquisitions of one object cannot be distinguished.
    fn waiter(&self, key: String) -> Locking {
        Locking { lock: self.0.create_lock(&key), held: None }
    }
}

pub struct Locking {
    lock: RedisDistributedLock,
    held: Option<RedisLockHandle>,
}

impl Waiter for Locking {
    async fn acquire(&mut self) {
        self.held = loop {
            match self.lock.acquire(None).await {
                Ok(handle) => break Some(handle),
                Err(LockError::Timeout(_)) => pause().await,
                Err(error) => panic!("{error}"),
            }
        };
    }

    async fn release(&mut self) {
        self.held.take().expect("held").release().await.expect("released");
    }
}

/// It has no pause of its own, so it gets the one of `rslock`.
async fn pause() {
    tokio::time::sleep(Duration::from_millis(random_range(0..200))).await;
}
