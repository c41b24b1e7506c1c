//! A call from inside of the body that holds the lock: it fails at once, instead of waiting for its
//! own end.

use std::future::pending;
use std::mem::take;
use std::sync::{Arc, Mutex};

use async_recursion::async_recursion;
use async_trait::async_trait;
use lockable_runtime::{LockError, Locker, distributed_lock};
use rstest::rstest;
use tokio::sync::Barrier;
use tracing::Level;

use crate::events;
use crate::support::{
    BoxFuture, Caller, hold, is_free, locker, locker_now, now, pause, start_and_drop,
};

#[distributed_lock(key = "k:{id}", locker = locks)]
async fn settle(locks: &Locker, id: u8) -> Result<u8, LockError> {
    pause().await;
    Ok(id)
}

#[distributed_lock(key = "k:{id}", locker = locks)]
fn settle_sync(locks: &Locker, id: u8) -> Result<u8, LockError> {
    Ok(id)
}

#[distributed_lock(key = "k:{id}", locker = locks)]
fn settle_boxed(locks: &Locker, id: u8) -> BoxFuture<'_, Result<u8, LockError>> {
    Box::pin(async move {
        pause().await;
        Ok(id)
    })
}

#[distributed_lock(key = "k:{id}", locker = locks, wait)]
async fn settle_in_turn(locks: &Locker, id: u8) -> Result<u8, LockError> {
    Ok(id)
}

#[distributed_lock(key = "k:{id}", locker = locks, wait = "1h", fair)]
fn settle_boxed_in_turn(locks: &Locker, id: u8) -> BoxFuture<'_, Result<u8, LockError>> {
    Box::pin(async move { Ok(id) })
}

#[distributed_lock(key = "k:{id}", locker = locks, wait)]
fn settle_sync_in_turn(locks: &Locker, id: u8) -> Result<u8, LockError> {
    Ok(id)
}

/// The call failed because its caller holds the lock, and it names that.
fn assert_own(outcome: Result<u8, LockError>) {
    let error = outcome.unwrap_err();
    assert!(error.is_held_by_caller() && !error.is_busy(), "{error}");
    assert_eq!(error.key(), Some("disLock:k:7"));
}

/// Every kind of call is refused for the key 7, also one that would wait, and free for another one. None of these
/// futures has a reason to wait.
fn assert_no_relock(locks: &Locker) {
    assert_own(now(settle(locks, 7)));
    assert_own(settle_sync(locks, 7));
    assert_own(now(settle_boxed(locks, 7)));
    assert_own(now(settle_in_turn(locks, 7)));
    assert_own(settle_sync_in_turn(locks, 7));
    assert_own(now(settle_boxed_in_turn(locks, 7)));
    assert_eq!(settle_sync(locks, 8).unwrap(), 8);
    assert_eq!(now(settle_in_turn(locks, 8)).unwrap(), 8);
    assert_eq!(now(settle_boxed_in_turn(locks, 8)).unwrap(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_body_cannot_relock() {
    #[distributed_lock(key = "k:{id}", locker = locks)]
    async fn call(locks: &Locker, id: u8) -> Option<u8> {
        assert_no_relock(locks);
        pause().await;
        assert_no_relock(locks);
        Some(id)
    }
    let locks = locker().await;
    // The body continues, and a call after it finds the lock free.
    for _ in 0..2 {
        assert_eq!(call(&locks, 7).await, Some(7));
        assert!(is_free(&locks, "k:7"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_boxed_body_cannot_relock() {
    #[distributed_lock(key = "k:{id}", locker = locks)]
    fn call(locks: &Locker, id: u8) -> BoxFuture<'_, Option<u8>> {
        assert_no_relock(locks);
        Box::pin(async move {
            pause().await;
            assert_no_relock(locks);
            Some(id)
        })
    }
    assert_eq!(call(&locker().await, 7).await, Some(7));
}

#[rstest]
fn a_sync_body_cannot_relock(
    #[values(Caller::NoRuntime, Caller::OneThread, Caller::Worker, Caller::BlockingThread)]
    caller: Caller,
) {
    #[distributed_lock(key = "k:{id}", locker = locks, wait, blocking)]
    fn call(locks: &Locker, id: u8) -> Option<u8> {
        assert_no_relock(locks);
        Some(id)
    }
    caller.run(|| {
        let locks = locker_now();
        assert_eq!(call(&locks, 7), Some(7));
        assert_eq!(call(&locks, 7), Some(7));
        assert!(is_free(&locks, "k:7"));
    });
}

#[tokio::test(start_paused = true)]
async fn a_recursion_with_one_key_is_refused() {
    #[distributed_lock(key = "k:7", locker = locks)]
    async fn plain(locks: &Locker, more: u8) -> Result<u8, LockError> {
        if more == 0 { Ok(0) } else { Box::pin(plain(locks, more - 1)).await }
    }
    #[async_recursion]
    #[distributed_lock(key = "k:7", locker = locks)]
    async fn above(locks: &Locker, more: u8) -> Result<u8, LockError> {
        if more == 0 { Ok(0) } else { above(locks, more - 1).await }
    }
    #[distributed_lock(key = "k:7", locker = locks)]
    #[async_recursion]
    async fn below(locks: &Locker, more: u8) -> Result<u8, LockError> {
        if more == 0 { Ok(0) } else { below(locks, more - 1).await }
    }
    #[distributed_lock(key = "k:7", locker = locks)]
    fn boxed(locks: &Locker, more: u8) -> BoxFuture<'_, Result<u8, LockError>> {
        Box::pin(async move { if more == 0 { Ok(0) } else { boxed(locks, more - 1).await } })
    }
    #[distributed_lock(key = "k:7", locker = locks)]
    fn sync(locks: &Locker, more: u8) -> Result<u8, LockError> {
        if more == 0 { Ok(0) } else { sync(locks, more - 1) }
    }
    let locks = locker().await;
    assert_own(plain(&locks, 1).await);
    assert_own(above(&locks, 1).await);
    assert_own(below(&locks, 1).await);
    assert_own(boxed(&locks, 1).await);
    assert_own(sync(&locks, 1));
    assert_eq!(plain(&locks, 0).await.unwrap(), 0);
    assert!(is_free(&locks, "k:7"));
}

#[tokio::test(start_paused = true)]
async fn a_recursion_with_distinct_keys_locks_every_level() {
    #[async_recursion]
    #[distributed_lock(key = "level:{level}", locker = locks)]
    async fn call(locks: &Locker, level: u8) -> Result<u8, LockError> {
        let lower = if level == 0 { 0 } else { call(locks, level - 1).await? };
        // The outer levels hold theirs, and the inner ones have released.
        for other in 0..=3 {
            assert_eq!(is_free(locks, &format!("level:{other}")), other < level, "{other}");
        }
        Ok(lower + 1)
    }
    assert_eq!(call(&locker().await, 3).await.unwrap(), 4);
}

/// Records the outcome of a call that is made while this is dropped.
struct Asks(Locker, Arc<Mutex<Vec<Result<u8, LockError>>>>);

impl Drop for Asks {
    fn drop(&mut self) {
        self.1.lock().unwrap().push(settle_sync(&self.0, 7));
    }
}

/// Goal: what a body drops is a part of it, on every way out.
/// Method: the body ends, has held its lock long enough, or its call is dropped.
#[tokio::test(start_paused = true)]
async fn what_a_body_drops_is_a_part_of_it() {
    #[distributed_lock(key = "k:7", renew, max_hold = 1, locker = locks)]
    async fn call(locks: &Locker, asks: Asks, goes_on: bool) -> Result<(), LockError> {
        let _asks = asks;
        if goes_on { pending().await } else { Ok(()) }
    }
    let (locks, outcomes) = (locker().await, Arc::default());
    let asks = || Asks(locks.clone(), Arc::clone(&outcomes));
    call(&locks, asks(), false).await.unwrap();
    assert!(call(&locks, asks(), true).await.unwrap_err().is_max_hold_reached());
    start_and_drop(call(&locks, asks(), true)).await;
    let outcomes = take(&mut *outcomes.lock().unwrap());
    assert_eq!(outcomes.len(), 3);
    outcomes.into_iter().for_each(assert_own);
    assert!(is_free(&locks, "k:7"));
}

struct Service(Locker);

#[async_trait]
trait Job {
    async fn run(&self, id: u8) -> Result<u8, LockError>;
}

#[async_trait]
impl Job for Service {
    #[distributed_lock(key = "k:{id}", locker = self.0)]
    async fn run(&self, id: u8) -> Result<u8, LockError> {
        pause().await;
        self.direct(id).await
    }
}

impl Service {
    #[distributed_lock(key = "k:{id}", locker = self.0)]
    async fn direct(&self, id: u8) -> Result<u8, LockError> {
        Ok(id)
    }
}

#[tokio::test(start_paused = true)]
async fn a_method_cannot_call_another_with_its_key() {
    let service = Service(locker().await);
    assert_own(service.run(7).await);
    assert_eq!(service.direct(7).await.unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn what_counts_is_the_whole_key_and_the_store() {
    #[distributed_lock(key = "disLock:k:{id}", prefix = "", locker = locks)]
    async fn call(locks: &Locker, elsewhere: &Locker, id: u8) -> Option<u8> {
        assert_own(settle(locks, id).await);
        assert_own(settle(&locks.clone(), id).await);
        assert_eq!(settle(elsewhere, id).await.unwrap(), id);
        Some(id)
    }
    assert_eq!(call(&locker().await, &locker().await, 7).await, Some(7));
}

#[tokio::test(start_paused = true)]
async fn siblings_are_other_callers() {
    #[distributed_lock(key = "k:7", locker = locks)]
    async fn holds(locks: &Locker, meeting: &Barrier) -> Option<u8> {
        meeting.wait().await;
        meeting.wait().await;
        Some(1)
    }
    async fn asks(locks: &Locker, meeting: &Barrier) {
        meeting.wait().await;
        assert!(settle(locks, 7).await.unwrap_err().is_busy());
        assert!(settle_boxed(locks, 7).await.unwrap_err().is_busy());
        assert!(settle_sync(locks, 7).unwrap_err().is_busy());
    }
    let (locks, meeting) = (locker().await, Barrier::new(2));
    let (held, ()) = tokio::join!(holds(&locks, &meeting), async {
        asks(&locks, &meeting).await;
        meeting.wait().await;
    });
    assert_eq!(held, Some(1));
    tokio::select! {
        biased;
        _ = holds(&locks, &meeting) => unreachable!("waits for the second meeting"),
        () = asks(&locks, &meeting) => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_a_body_spawns_is_another_caller() {
    #[distributed_lock(key = "k:7", locker = locks)]
    async fn call(locks: &Locker) -> Option<u8> {
        let locks = locks.clone();
        tokio::spawn(async move { settle(&locks, 7).await.unwrap_err().is_busy() })
            .await
            .ok()
            .map(u8::from)
    }
    assert_eq!(call(&locker().await).await, Some(1));
}

/// It is an error, not a busy lock: `on_busy` would hide the mistake.
#[tokio::test(start_paused = true)]
async fn without_a_return_value_a_relock_is_logged() {
    #[distributed_lock(key = "k:7", locker = locks)]
    async fn unit(locks: &Locker) {
        unreachable!("runs under its caller's lock")
    }
    #[distributed_lock(key = "k:7", locker = locks)]
    fn sync(locks: &Locker) {
        unreachable!("runs under its caller's lock")
    }
    #[distributed_lock(key = "k:7", locker = locks)]
    fn boxed(locks: &Locker) -> BoxFuture<'_, Option<u8>> {
        Box::pin(async { unreachable!("runs under its caller's lock") })
    }
    #[distributed_lock(key = "k:7", locker = locks, on_busy = 1, on_error = |_| 2)]
    async fn answered(locks: &Locker) -> u8 {
        unreachable!("runs under its caller's lock")
    }
    #[distributed_lock(key = "k:7", locker = locks)]
    async fn outer(locks: &Locker) -> Option<u8> {
        unit(locks).await;
        events::assert_only(Level::ERROR, &["disLock:k:7"]);
        sync(locks);
        events::assert_only(Level::ERROR, &["disLock:k:7"]);
        assert_eq!(boxed(locks).await, None);
        events::assert_only(Level::ERROR, &["disLock:k:7"]);
        Some(answered(locks).await)
    }
    let locks = locker().await;
    events::listen();
    assert_eq!(outer(&locks).await, Some(2));
    let _other = hold(&locks, "k:7").await;
    assert_eq!(answered(&locks).await, 1);
}
