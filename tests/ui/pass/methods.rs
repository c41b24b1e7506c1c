//! Methods.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use lockable_runtime::{LockError, Locker, distributed_lock};

use crate::pause;

pub struct Config {
    pub name: String,
}

pub struct Service {
    pub id: u64,
    pub config: Arc<Config>,
    pub locks: Locker,
}

impl Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "service{}", self.id)
    }
}

impl Service {
    pub const REGION: &'static str = "eu";

    fn name(&self) -> &str {
        &self.config.name
    }

    #[distributed_lock(
        key("{}:{}:{self}:{}:{}", self.id, self.config.name, Self::REGION, self.name()),
        locker = self.locks
    )]
    pub async fn by_reference(&self) -> Option<u64> {
        pause().await;
        Some(self.id)
    }

    #[distributed_lock(key = "{self}", guard = lock)]
    pub async fn by_mutable_reference(&mut self, more: u64) -> Option<u64> {
        self.id += more;
        pause().await;
        self.id += u64::from(lock.fencing_token());
        Some(self.id)
    }

    #[distributed_lock(key = "{self}", on_busy = Some(self.id), locker = &self.locks)]
    pub async fn by_value(self) -> Option<u64> {
        pause().await;
        Some(self.id)
    }

    #[distributed_lock(key = "{self}")]
    pub async fn by_mutable_value(mut self) -> Option<u64> {
        self.id += 1;
        pause().await;
        Some(self.id)
    }

    #[distributed_lock(key = "{self}", locker = self.locks.clone())]
    pub async fn by_arc(self: Arc<Self>) -> Option<u64> {
        Some(self.id)
    }

    #[distributed_lock(key = "{self}")]
    pub async fn by_box(self: Box<Self>) -> Option<u64> {
        Some(self.id)
    }

    #[distributed_lock(key = "{self}")]
    pub async fn by_pin(self: Pin<&mut Self>) -> Option<u64> {
        pause().await;
        Some(self.id)
    }

    #[distributed_lock(key = "{self}")]
    pub async fn by_mutable_binding(mut self: &Self, other: &Self) -> Option<u64> {
        if other.id > 3 {
            self = other;
        }
        Some(self.id)
    }

    #[distributed_lock(key = "{id}")]
    pub async fn without_self(id: u8) -> Option<Self> {
        let _ = id;
        None
    }

    #[distributed_lock(key = "recursive:{level}")]
    pub async fn recursive(&self, level: u64) -> Result<u64, LockError> {
        if level == 0 { Ok(0) } else { Box::pin(self.recursive(level - 1)).await }
    }
}

#[allow(async_fn_in_trait)]
pub trait Job {
    fn number(&self) -> u64;

    #[distributed_lock(key("job:{}", self.number()))]
    async fn run(&self) -> Option<u64> {
        pause().await;
        Some(self.number())
    }

    async fn rename(&mut self, name: &str) -> Option<usize>;
}

impl Job for Service {
    fn number(&self) -> u64 {
        self.id
    }

    #[distributed_lock(key = "rename:{name}")]
    async fn rename(&mut self, name: &str) -> Option<usize> {
        self.id += 1;
        pause().await;
        Some(name.len())
    }
}

pub struct Phantom<T>(PhantomData<T>);

impl<T: Send + Sync> Phantom<T> {
    #[distributed_lock(key = "k", on_busy = Vec::new(), on_error = |_| Vec::new())]
    pub async fn make(&self) -> Vec<T> {
        pause().await;
        Vec::new()
    }
}

pub fn futures_can_be_sent(service: &mut Service, owned: Service) {
    fn assert_send<T: Send>(_: T) {}
    assert_send(service.by_reference());
    assert_send(service.recursive(1));
    assert_send(service.by_mutable_reference(1));
    assert_send(owned.by_value());
}
