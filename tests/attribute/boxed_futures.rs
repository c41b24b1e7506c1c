//! Functions that return a boxed future, written by hand or by macros.

use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;

use async_recursion::async_recursion;
use async_trait::async_trait;
use lockable_runtime::{LockError, Locker, distributed_lock};

use crate::support::{
    BoxFuture, Journal, ShopError, hold, is_free, locker, pause, poll_once, start_and_drop,
};

type LocalBoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

#[distributed_lock(key = "k:{id}", locker = locks)]
fn by_hand<'a>(locks: &'a Locker, id: u8) -> Pin<Box<dyn Future<Output = Option<u8>> + Send + 'a>> {
    Box::pin(async move {
        pause().await;
        assert!(!is_free(locks, "k:7"));
        Some(id)
    })
}

#[distributed_lock(key = "k:{id}", locker = locks)]
fn without_send(locks: &Locker, id: u8) -> Pin<Box<dyn Future<Output = Option<Rc<u8>>> + '_>> {
    let id = Rc::new(id);
    Box::pin(async move {
        pause().await;
        assert!(!is_free(locks, "k:7"));
        Some(id)
    })
}

#[distributed_lock(key = "k:{id}", locker = locks)]
fn by_alias(locks: &Locker, id: u8) -> BoxFuture<'_, Result<u8, ShopError>> {
    if id == 0 {
        return Box::pin(async { Err(ShopError::SoldOut) });
    }
    Box::pin(async move {
        pause().await;
        assert!(!is_free(locks, "k:7"));
        Ok(id)
    })
}

#[distributed_lock(key = "k:{id}", locker = locks, guard = lock, on_busy = 1, on_error = |_| 2)]
fn by_local_alias<'a>(locks: &'a Locker, id: &'a str) -> LocalBoxFuture<'a, u8> {
    Box::pin(async move {
        pause().await;
        assert!(lock.is_held() && !is_free(locks, "k:7"));
        id.parse().unwrap()
    })
}

#[tokio::test(start_paused = true)]
async fn a_boxed_future_is_locked_while_it_runs() {
    let locks = locker().await;
    for _ in 0..2 {
        assert_eq!(by_hand(&locks, 7).await, Some(7));
        assert_eq!(without_send(&locks, 7).await, Some(Rc::new(7)));
        assert!(matches!(by_alias(&locks, 7).await, Ok(7)));
        assert_eq!(by_local_alias(&locks, "7").await, 7);
    }
    assert!(matches!(by_alias(&locks, 0).await, Err(ShopError::SoldOut)));
    assert!(is_free(&locks, "k:7"));
    let _other = hold(&locks, "k:7").await;
    assert_eq!(by_hand(&locks, 7).await, None);
    assert!(matches!(by_alias(&locks, 7).await, Err(ShopError::Lock(error)) if error.is_busy()));
    assert_eq!(by_local_alias(&locks, "7").await, 1);
    assert_eq!(by_local_alias(&locks, "").await, 2);
}

#[tokio::test(start_paused = true)]
async fn nothing_happens_before_the_first_poll() {
    #[distributed_lock(key("{}", rendered(&journal)), locker = locks)]
    fn call(locks: Locker, journal: Journal) -> BoxFuture<'static, ()> {
        journal.write("started");
        Box::pin(async move { journal.write("ran") })
    }
    fn rendered(journal: &Journal) -> u8 {
        journal.write("rendered");
        7
    }
    let (locks, journal) = (locker().await, Journal::default());
    let mut future = call(locks.clone(), journal.clone());
    assert!(journal.entries().is_empty());
    assert!(is_free(&locks, "7"));
    assert!(poll_once(pin!(&mut future)).await.is_some());
    assert_eq!(journal.entries(), ["rendered", "started", "ran"]);
}

#[tokio::test(start_paused = true)]
async fn the_inner_future_is_dropped_before_the_release() {
    #[distributed_lock(key = "k", locker = locks)]
    fn call(locks: Locker, journal: Journal) -> BoxFuture<'static, ()> {
        let transaction = journal.drops("transaction").looking_at(&locks, "k");
        Box::pin(async move {
            pause().await;
            drop(transaction);
        })
    }
    let (locks, journal) = (locker().await, Journal::default());
    start_and_drop(call(locks.clone(), journal.clone())).await;
    call(locks.clone(), journal.clone()).await;
    assert_eq!(journal.entries(), ["transaction when held"; 2]);
    assert!(is_free(&locks, "k"));
}

#[async_trait]
trait Job {
    fn locks(&self) -> &Locker;

    #[distributed_lock(key("job:{}:{number}", self.id()), locker = self.locks())]
    async fn run(&self, number: u8) -> Option<u8> {
        pause().await;
        assert!(!is_free(self.locks(), "job:3:7"));
        Some(number)
    }

    fn id(&self) -> u8;

    async fn rename(&mut self, name: &str, mut more: u8) -> Result<usize, ShopError>;

    async fn finish(self, _permit: impl Send + 'static) -> u8
    where
        Self: Sized;

    async fn nothing(locks: &Locker)
    where
        Self: Sized;
}

struct Service {
    id: u8,
    name: String,
    locks: Locker,
}

#[async_trait]
impl Job for Service {
    fn locks(&self) -> &Locker {
        &self.locks
    }

    fn id(&self) -> u8 {
        self.id
    }

    #[distributed_lock(key("{}:{name}:{more}", self.id), locker = self.locks, guard = lock)]
    async fn rename(&mut self, name: &str, mut more: u8) -> Result<usize, ShopError> {
        pause().await;
        assert_eq!(lock.key().as_str(), "disLock:3:new:1");
        assert!(!is_free(&self.locks, "3:new:1"));
        more += 1;
        name.clone_into(&mut self.name);
        Ok(self.name.len() + usize::from(more))
    }

    #[distributed_lock(key = "finish", locker = self.locks, on_busy = self.id, on_error = |_| 1)]
    async fn finish(self, _permit: impl Send + 'static) -> u8 {
        pause().await;
        assert!(!is_free(&self.locks, "finish"));
        0
    }

    #[distributed_lock(key = "k", locker = locks)]
    async fn nothing(locks: &Locker) {
        assert!(!is_free(locks, "k"));
    }
}

#[tokio::test(start_paused = true)]
async fn methods_under_async_trait_are_locked() {
    let locks = locker().await;
    let service = || Service { id: 3, name: String::new(), locks: locks.clone() };
    assert_eq!(service().run(7).await, Some(7));
    assert_eq!(service().rename("new", 1).await.unwrap(), 5);
    let journal = Journal::default();
    assert_eq!(service().finish(journal.drops("permit").looking_at(&locks, "finish")).await, 0);
    assert_eq!(journal.entries(), ["permit when held"]);
    Service::nothing(&locks).await;
    let _other = hold(&locks, "finish").await;
    assert_eq!(service().finish(()).await, 3);
}

#[async_trait(?Send)]
trait Local {
    #[distributed_lock(key = "k:{id}", locker = locks)]
    async fn run(&self, locks: &Locker, id: Rc<u8>) -> Option<Rc<u8>> {
        pause().await;
        assert!(!is_free(locks, "k:7"));
        Some(id)
    }
}

#[async_trait(?Send)]
impl Local for u8 {}

#[tokio::test(start_paused = true)]
async fn methods_under_async_trait_without_send_are_locked() {
    assert_eq!(7.run(&locker().await, Rc::new(7)).await, Some(Rc::new(7)));
}

#[distributed_lock(key = "k:{level}", locker = locks)]
#[async_recursion]
async fn recursion_below(locks: &Locker, level: u8) -> Result<u8, LockError> {
    assert!(!is_free(locks, &format!("k:{level}")));
    Ok(if level == 0 { 0 } else { 1 + recursion_below(locks, level - 1).await? })
}

#[async_recursion]
#[distributed_lock(key = "k:{level}", locker = locks)]
async fn recursion_above(locks: &Locker, level: u8) -> Result<u8, LockError> {
    assert!(!is_free(locks, &format!("k:{level}")));
    Ok(if level == 0 { 0 } else { 1 + recursion_above(locks, level - 1).await? })
}

#[tokio::test(start_paused = true)]
async fn recursive_functions_are_locked_at_every_level() {
    let locks = locker().await;
    assert_eq!(recursion_below(&locks, 3).await.unwrap(), 3);
    assert_eq!(recursion_above(&locks, 3).await.unwrap(), 3);
    let _other = hold(&locks, "k:1").await;
    assert!(recursion_below(&locks, 3).await.unwrap_err().is_busy());
    assert!(recursion_above(&locks, 3).await.unwrap_err().is_busy());
}
