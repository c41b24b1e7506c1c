//! Who waits, and for how long.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use async_recursion::async_recursion;
use async_trait::async_trait;
use lockable_runtime::{LockError, distributed_lock};

use crate::boxed::BoxFuture;
use crate::pause;

const LIMIT: Duration = Duration::from_millis(1_500);

pub struct Patience {
    pub limit: Duration,
    pub perhaps: Option<Duration>,
}

#[distributed_lock(key = "k", wait)]
pub async fn forever() {}

#[distributed_lock(wait, key = "k", fair)]
pub async fn fairly() -> Option<u8> {
    pause().await;
    Some(1)
}

#[distributed_lock(key("k:{}", id), wait, expire = 10)]
pub async fn after_arguments(id: u8) -> Option<u8> {
    pause().await;
    Some(id)
}

#[distributed_lock(key = "k:{id}", fair, wait = 3)]
pub async fn seconds(id: u8) -> Result<u8, LockError> {
    pause().await;
    Ok(id)
}

#[distributed_lock(key = "k", wait = "1m30s", expire = "1m", renew, max_hold = "5m", guard = lock)]
pub async fn text() -> Result<bool, Box<dyn std::error::Error>> {
    pause().await;
    Ok(lock.is_held())
}

#[distributed_lock(key = "k", wait = LIMIT, on_busy = skip)]
pub async fn constant() -> Result<Option<u8>, LockError> {
    pause().await;
    Ok(Some(1))
}

#[distributed_lock(key = "k", wait = patience.perhaps? * 2, on_busy = Some(patience.limit))]
pub async fn expression(patience: Patience) -> Option<Duration> {
    pause().await;
    patience.perhaps
}

#[distributed_lock(key = "k", wait = asked(limit).await, fair, on_busy = 0, on_error = |err| err.to_string().len())]
pub async fn awaited(limit: &Duration) -> usize {
    pause().await;
    3
}

async fn asked(limit: &Duration) -> Duration {
    pause().await;
    *limit
}

#[distributed_lock(key = "k", wait, on_error = |_| None)]
pub async fn only_on_error() -> Option<u8> {
    pause().await;
    Some(3)
}

#[distributed_lock(key = "k:{t}:{N}", wait = if N > 3 { LIMIT } else { limit.into() })]
pub async fn generic<T: Display, L: Into<Duration> + Copy, const N: u64>(
    t: &T,
    limit: L,
) -> Option<L> {
    pause().await;
    let _ = t;
    Some(limit)
}

#[distributed_lock(key = "k", wait = limit, fair)]
pub fn by_hand(limit: Duration) -> Pin<Box<dyn Future<Output = Option<u64>>>> {
    Box::pin(async move {
        pause().await;
        Some(limit.as_secs())
    })
}

#[distributed_lock(key = "k:{text}", wait = "3s", on_busy = Ok(text))]
pub fn by_alias<'a>(
    text: &'a str,
    log: &'a mut String,
) -> BoxFuture<'a, Result<&'a str, LockError>> {
    log.push_str(text);
    Box::pin(async move {
        pause().await;
        Ok(text)
    })
}

#[async_recursion]
#[distributed_lock(key = "k:{level}", wait = "3s")]
pub async fn recursion(level: u64) -> Option<u64> {
    if level == 0 { Some(0) } else { recursion(level - 1).await }
}

#[async_trait]
pub trait Job {
    #[distributed_lock(key = "job:{name}", wait, fair)]
    async fn run(&mut self, name: &str) -> Option<usize> {
        pause().await;
        Some(name.len())
    }

    async fn rename(&mut self, name: &str) -> Result<usize, LockError>;
}

#[async_trait]
impl Job for Patience {
    #[distributed_lock(key = "{name}", wait = self.limit)]
    async fn rename(&mut self, name: &str) -> Result<usize, LockError> {
        pause().await;
        self.perhaps = None;
        Ok(name.len())
    }
}

impl Patience {
    #[distributed_lock(key = "k", wait = self.limit, blocking)]
    pub fn sync(&mut self) -> Option<&mut Duration> {
        self.perhaps = None;
        Some(&mut self.limit)
    }
}

#[distributed_lock(key = "k", wait)]
pub fn sync_forever() {}

#[distributed_lock(key = "k", wait, blocking)]
pub fn sync_blocking() {}

#[distributed_lock(key = "k", blocking, wait = "3s", fair, guard = lock, on_busy = skip)]
pub fn sync_limit() -> Result<(), LockError> {
    let _ = lock.is_held();
    Ok(())
}

#[distributed_lock(key = "k:{t}", wait = LIMIT, on_busy = t, on_error = |_| unreachable!())]
pub fn sync_generic<T: Display>(t: T) -> T {
    t
}

pub fn futures_can_be_sent(patience: &mut Patience, owned: Patience, text: &str) {
    fn assert_send<T: Send>(_: T) {}
    assert_send(forever());
    assert_send(fairly());
    assert_send(expression(owned));
    assert_send(awaited(&LIMIT));
    assert_send(generic::<_, _, 3>(&1, LIMIT));
    assert_send(patience.run(text));
}

/// A call that waits without a limit finds no busy lock, so that only a failure needs a value.
#[distributed_lock(key = "k", wait, on_error = |_| 0)]
pub async fn without_on_busy() -> u8 {
    1
}

#[distributed_lock(key = "k", wait, on_error = |_| 0)]
pub fn without_on_busy_at_once() -> u8 {
    1
}
