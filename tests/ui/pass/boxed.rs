//! Functions that return a boxed future.

use std::future::Future;
use std::pin::Pin;

use async_recursion::async_recursion;
use async_trait::async_trait;
use lockable_runtime::{LockError, distributed_lock};

use crate::pause;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
pub type LocalBoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

#[distributed_lock(key = "k:{id}")]
pub fn by_hand(id: u64) -> ::std::pin::Pin<::std::boxed::Box<dyn Future<Output = Option<u64>>>> {
    Box::pin(async move {
        pause().await;
        Some(id)
    })
}

#[distributed_lock(key = "k:{text}", guard = lock)]
pub fn by_alias<'a>(
    text: &'a str,
    log: &'a mut String,
) -> BoxFuture<'a, Result<&'a str, LockError>> {
    log.push_str(lock.key().as_str());
    if text.is_empty() {
        return Box::pin(async { Ok("") });
    }
    Box::pin(async move {
        pause().await;
        log.push_str(text);
        Ok(text)
    })
}

#[distributed_lock(key = "k", on_busy = 1, on_error = |_| 2)]
pub fn by_local_alias(text: &str) -> LocalBoxFuture<'_, usize> {
    Box::pin(async move {
        pause().await;
        text.len()
    })
}

#[distributed_lock(key = "k")]
pub fn nothing() -> BoxFuture<'static, ()> {
    Box::pin(pause())
}

#[async_trait]
pub trait Job {
    #[distributed_lock(key("job:{}", self.id()))]
    async fn run(&self, more: u8) -> Option<u8> {
        pause().await;
        Some(self.id() + more)
    }

    fn id(&self) -> u8;

    async fn rename(&mut self, name: &str) -> Result<usize, LockError>;

    async fn count(self: Box<Self>, mut more: usize) -> usize;
}

pub struct Service(pub String);

#[async_trait]
impl Job for Service {
    fn id(&self) -> u8 {
        3
    }

    #[distributed_lock(key("{}:{name}", self.0))]
    async fn rename(&mut self, name: &str) -> Result<usize, LockError> {
        pause().await;
        name.clone_into(&mut self.0);
        Ok(name.len())
    }

    #[distributed_lock(key = "k:{more}", on_busy = more, on_error = |_| more)]
    async fn count(self: Box<Self>, mut more: usize) -> usize {
        pause().await;
        more += self.0.len();
        more
    }
}

#[async_trait(?Send)]
pub trait Local {
    #[distributed_lock(key = "k:{id}")]
    async fn run(&self, id: u64) {
        pause().await;
        drop(id.to_string());
    }
}

#[async_recursion]
#[distributed_lock(key = "k:{level}")]
pub async fn recursion_above(level: u64) -> Option<u64> {
    if level == 0 { Some(0) } else { recursion_above(level - 1).await }
}

#[distributed_lock(key = "k:{level}")]
#[async_recursion(?Send)]
pub async fn recursion_below(level: u64) -> Option<u64> {
    if level == 0 { Some(0) } else { recursion_below(level - 1).await }
}
