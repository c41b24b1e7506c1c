//! How long a lock is held, and what its loss does.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use async_recursion::async_recursion;
use async_trait::async_trait;
use lockable_runtime::{LockError, distributed_lock};

use crate::boxed::{BoxFuture, LocalBoxFuture};
use crate::pause;

const LONGEST: Duration = Duration::from_millis(90_500);
const SHORTEST: Duration = Duration::from_millis(1_500);

pub struct Limits {
    pub longest: Duration,
    pub shortest: Option<Duration>,
    pub name: String,
}

#[distributed_lock(key = "k", renew)]
pub async fn renewed() {}

#[distributed_lock(renew, key = "k", max_hold = 300, min_hold = 3, on_lost = cancel)]
pub async fn literals() {
    pause().await;
}

#[distributed_lock(key = "k", expire = "1m", min_hold = "3s", renew, max_hold = "1h", on_lost = finish,)]
pub async fn texts() -> Option<u8> {
    pause().await;
    Some(1)
}

#[distributed_lock(key = "k", renew, max_hold = LONGEST, min_hold = SHORTEST)]
pub async fn constants() -> Result<(), LockError> {
    pause().await;
    Ok(())
}

#[distributed_lock(
    key = "k:{id}",
    expire = limits.shortest? * 2,
    renew,
    max_hold = limits.longest + Duration::from_millis(id),
    min_hold = if id > 3 { limits.shortest? } else { SHORTEST },
    guard = lock
)]
pub async fn expressions(id: u64, limits: Limits) -> Option<bool> {
    pause().await;
    Some(lock.is_lost() && limits.longest > SHORTEST)
}

#[distributed_lock(key = "k", expire = asked(longest).await, renew, max_hold = *longest, min_hold = SHORTEST)]
pub async fn awaited(longest: &Duration) {}

async fn asked(longest: &Duration) -> Duration {
    pause().await;
    *longest
}

#[distributed_lock(key = "k", renew, on_lost = finish, on_busy = 0, on_error = |err| err.to_string().len())]
pub async fn answers() -> usize {
    pause().await;
    3
}

#[distributed_lock(key = "k:{t}:{N}", renew, max_hold = Into::<Duration>::into(limit), min_hold = Duration::from_millis(N))]
pub async fn generic<T: Display, L: Into<Duration> + Copy, const N: u64>(
    t: &T,
    limit: L,
) -> Option<L> {
    pause().await;
    let _ = t;
    Some(limit)
}

pub trait Limited {
    const LONGEST: Duration;
}

#[distributed_lock(key = "k", renew, max_hold = T::LONGEST)]
pub async fn of_a_type<T: Limited>() -> Option<T> {
    pause().await;
    None
}

#[distributed_lock(key = "k", renew, max_hold = longest, min_hold = "1s", on_lost = finish)]
pub fn by_hand(longest: Duration) -> Pin<Box<dyn Future<Output = Option<u64>>>> {
    Box::pin(async move {
        pause().await;
        Some(longest.as_secs())
    })
}

#[distributed_lock(key = "k:{text}", renew, max_hold = "5m", min_hold = SHORTEST, on_lost = cancel, guard = lock)]
pub fn by_alias<'a>(
    text: &'a str,
    log: &'a mut String,
) -> BoxFuture<'a, Result<&'a str, LockError>> {
    log.push_str(lock.key().as_str());
    Box::pin(async move {
        pause().await;
        Ok(text)
    })
}

#[distributed_lock(key = "k", expire = 20, renew, min_hold = SHORTEST, on_busy = 1, on_error = |_| 2)]
pub fn by_local_alias(text: &str) -> LocalBoxFuture<'_, usize> {
    Box::pin(async move {
        pause().await;
        text.len()
    })
}

#[async_recursion]
#[distributed_lock(key = "k:{level}", renew, max_hold = LONGEST, on_lost = finish)]
pub async fn recursion_above(level: u64) -> Option<u64> {
    if level == 0 { Some(0) } else { recursion_above(level - 1).await }
}

#[distributed_lock(key = "k:{level}", renew, min_hold = Duration::from_millis(level))]
#[async_recursion]
pub async fn recursion_below(level: u64) -> Option<u64> {
    if level == 0 { Some(0) } else { recursion_below(level - 1).await }
}

#[async_trait]
pub trait Job {
    fn limits(&self) -> &Limits;

    #[distributed_lock(key = "job:{name}", renew, max_hold = self.limits().longest, on_lost = cancel)]
    async fn run(&mut self, name: &str) -> Option<usize> {
        pause().await;
        Some(name.len())
    }

    async fn rename(&mut self, name: &str) -> Result<usize, LockError>;
}

#[async_trait]
impl Job for Limits {
    fn limits(&self) -> &Limits {
        self
    }

    #[distributed_lock(key = "{name}", expire = self.longest, renew, min_hold = SHORTEST, on_lost = finish)]
    async fn rename(&mut self, name: &str) -> Result<usize, LockError> {
        pause().await;
        self.shortest = None;
        Ok(name.len())
    }
}

impl Limits {
    fn at_most(&self) -> Duration {
        self.longest
    }

    #[distributed_lock(key = "k", renew, max_hold = self.at_most(), min_hold = self.shortest?)]
    pub async fn by_reference(&self) -> Option<Duration> {
        pause().await;
        self.shortest
    }

    #[distributed_lock(key = "k", renew, max_hold = self.longest, on_lost = finish, guard = lock)]
    pub async fn by_mutable_value(mut self) -> Result<Self, LockError> {
        self.longest = lock.remaining();
        pause().await;
        Ok(self)
    }

    #[distributed_lock(key = "k", renew, max_hold = self.longest, min_hold = self.shortest?, on_lost = finish)]
    pub fn waiting(&mut self) -> Option<&mut Duration> {
        self.shortest = None;
        Some(&mut self.longest)
    }
}

#[distributed_lock(key = "k", renew)]
pub fn sync_renewed() {}

#[distributed_lock(key = "k", renew, max_hold = "5m", min_hold = 3, on_lost = finish, guard = lock)]
pub fn sync_literals() -> Option<bool> {
    Some(lock.is_held())
}

#[distributed_lock(key = "k", expire = longest, renew, max_hold = longest * 3, min_hold = SHORTEST, on_busy = skip)]
pub fn sync_expressions(longest: Duration) -> Result<(), LockError> {
    let _ = longest;
    Ok(())
}

#[distributed_lock(key = "k:{t}", renew, max_hold = T::LONGEST, on_busy = t, on_error = |_| unreachable!())]
pub fn sync_generic<T: Limited + Display>(t: T) -> T {
    t
}

pub fn futures_can_be_sent(limits: &mut Limits, owned: Limits, text: &str) {
    fn assert_send<T: Send>(_: T) {}
    assert_send(literals());
    assert_send(awaited(&LONGEST));
    assert_send(answers());
    assert_send(generic::<_, _, 3>(&1, LONGEST));
    assert_send(limits.by_reference());
    assert_send(limits.run(text));
    assert_send(owned.by_mutable_value());
}

/// The warnings themselves are clean to clippy.
#[allow(deprecated)]
#[distributed_lock(key = "k", expire = 20_000, min_hold = "11s", wait, on_busy = skip)]
pub async fn warned_of() {}

#[allow(deprecated)]
#[distributed_lock(key = "k", min_hold = "11s")]
pub fn warned_of_at_once() {}
