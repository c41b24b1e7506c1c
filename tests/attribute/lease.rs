//! `renew`, and what `on_lost` does with a body whose lock is lost.

use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

use async_trait::async_trait;
use lockable_runtime::__internals::MemoryStore;
use lockable_runtime::{Lease, LockError, LockGuard, Locker, distributed_lock};
use tracing::Level;

use crate::events;
use crate::support::{
    Journal, ShopError, elapse, hold, is_free, locker, now, pause, poll_once, start_and_drop,
};

/// The lease of a call that sets none.
const LEASE: Duration = Duration::from_secs(10);

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Works through many leases, and looks after each.
async fn work_long(locks: &Locker, lock: &Lease) {
    for _ in 0..10 {
        elapse(LEASE).await;
        assert!(lock.is_held() && !is_free(locks, "k").await);
    }
}

#[distributed_lock(key = "k", locker = locks, renew, guard = lock)]
async fn renewed(locks: &Locker) -> Result<Lease, LockError> {
    work_long(locks, &lock).await;
    Ok(lock)
}

#[distributed_lock(key = "k", locker = locks, renew, guard = lock)]
fn renewed_in_a_box(locks: &Locker) -> BoxFuture<'_, Result<Lease, LockError>> {
    Box::pin(async move {
        work_long(locks, &lock).await;
        Ok(lock)
    })
}

struct Service(Locker);

#[async_trait]
trait Job {
    async fn run(&self) -> Result<Lease, LockError>;
}

#[async_trait]
impl Job for Service {
    #[distributed_lock(key = "k", locker = self.0, renew, guard = lock)]
    async fn run(&self) -> Result<Lease, LockError> {
        work_long(&self.0, &lock).await;
        Ok(lock)
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewed_body_runs_through_many_leases() {
    let service = Service(locker().await);
    let locks = &service.0;
    events::listen();
    for call in [Box::pin(renewed(locks)), renewed_in_a_box(locks), service.run()] {
        let lease = call.await.unwrap();
        assert!(is_free(locks, "k").await);
        elapse(LEASE).await;
        assert!(!lease.is_held() && !lease.is_lost());
        assert!(is_free(locks, "k").await);
    }
    assert!(events::take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn renewal_ends_with_a_call_that_is_dropped() {
    #[distributed_lock(key = "k", locker = locks, renew)]
    async fn call(locks: &Locker) {
        pause().await;
        unreachable!("continues after its drop")
    }
    let locks = locker().await;
    start_and_drop(call(&locks)).await;
    // Were it renewed, it would be renewed for ever.
    elapse(LEASE * 2).await;
    assert!(is_free(&locks, "k").await);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_not_renewed_is_stopped_midway() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn call(locks: &Locker, journal: &Journal) -> Result<(), LockError> {
        for step in ["first", "second", "third"] {
            elapse(LEASE * 2 / 3).await;
            journal.write(step);
        }
        Ok(())
    }
    let (locks, journal) = (locker().await, Journal::default());
    let error = call(&locks, &journal).await.unwrap_err();
    assert!(error.is_lost() && !error.is_completed(), "{error}");
    assert_eq!(journal.entries(), ["first"]);
}

/// Goal: a renewed body is stopped when its lock is gone, though its deadline is far. Method: the
/// store forgets everything, so the next renewal finds no holder.
#[tokio::test(start_paused = true)]
async fn a_renewed_body_whose_lock_disappears_is_stopped() {
    #[distributed_lock(key = "k", locker = locks, renew, on_lost = cancel)]
    async fn call(locks: &Locker, store: &MemoryStore, journal: &Journal) -> Result<(), LockError> {
        let _transaction = journal.drops("transaction");
        store.flush();
        elapse(LEASE * 2).await;
        journal.write("continued");
        Ok(())
    }
    let locks = Locker::connect("memory://disappears").await.unwrap();
    let (store, journal) = (MemoryStore::open("disappears").unwrap(), Journal::default());
    let error = call(&locks, &store, &journal).await.unwrap_err();
    assert!(error.is_lost() && !error.is_completed(), "{error}");
    assert_eq!(journal.entries(), ["transaction"]);
}

/// Waits until the lock is lost, and then as long again.
async fn outlive(lock: &Lease) {
    assert!(lock.is_held() && !lock.is_lost());
    assert!(lock.lost().await.is_lost());
    elapse(LEASE).await;
    assert!(!lock.is_held() && lock.is_lost());
}

/// Exactly one event at error level, and it names the key.
fn assert_error_event() {
    let logged = events::take();
    let errors: Vec<_> = logged.iter().filter(|event| event.level == Level::ERROR).collect();
    assert_eq!(errors.len(), 1, "{logged:#?}");
    assert!(errors[0].fields.contains("disLock:k"), "{errors:?}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_may_finish_gives_its_value() {
    #[distributed_lock(key = "k", locker = locks, on_lost = finish, guard = lock)]
    async fn unit(locks: &Locker, journal: &Journal) {
        outlive(&lock).await;
        journal.write("finished");
    }
    #[distributed_lock(key = "k", locker = locks, on_lost = finish, guard = lock)]
    async fn option(locks: &Locker) -> Option<u8> {
        outlive(&lock).await;
        Some(7)
    }
    #[distributed_lock(key = "k", locker = locks, on_lost = finish, guard = lock)]
    async fn result(locks: &Locker) -> Result<u8, ShopError> {
        outlive(&lock).await;
        Err(ShopError::SoldOut)
    }
    #[distributed_lock(key = "k", locker = locks, on_lost = finish, guard = lock,
        on_busy = 1, on_error = |_| 2)]
    async fn answered(locks: &Locker) -> u8 {
        outlive(&lock).await;
        7
    }
    #[distributed_lock(key = "k", locker = locks, on_lost = finish, guard = lock)]
    fn boxed(locks: &Locker) -> BoxFuture<'_, Option<u8>> {
        Box::pin(async move {
            outlive(&lock).await;
            Some(7)
        })
    }
    let (locks, journal) = (locker().await, Journal::default());
    events::listen();
    unit(&locks, &journal).await;
    assert_eq!(journal.entries(), ["finished"]);
    assert_error_event();
    assert_eq!(option(&locks).await, Some(7));
    assert_error_event();
    assert!(matches!(result(&locks).await, Err(ShopError::SoldOut)));
    assert_error_event();
    assert_eq!(answered(&locks).await, 7);
    assert_error_event();
    assert_eq!(boxed(&locks).await, Some(7));
    assert_error_event();
}

#[tokio::test(start_paused = true)]
async fn a_finishing_body_spares_the_next_holder() {
    #[distributed_lock(key = "k", locker = locks, on_lost = finish, guard = lock)]
    async fn call(locks: &Locker) -> Option<LockGuard> {
        outlive(&lock).await;
        // In a task of its own, which is another caller.
        let locks = locks.clone();
        tokio::spawn(async move { hold(&locks, "k").await }).await.ok()
    }
    let locks = locker().await;
    let next = call(&locks).await.unwrap();
    assert!(next.is_held() && !is_free(&locks, "k").await);
    next.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lost_lock_is_an_error_by_return_type() {
    #[distributed_lock(key = "k", locker = locks, on_lost = cancel, guard = lock)]
    async fn unit(locks: &Locker) {
        outlive(&lock).await;
    }
    #[distributed_lock(key = "k", locker = locks, on_lost = cancel, guard = lock)]
    async fn option(locks: &Locker) -> Option<u8> {
        outlive(&lock).await;
        Some(7)
    }
    #[distributed_lock(key = "k", locker = locks, on_lost = cancel, guard = lock)]
    async fn result(locks: &Locker) -> Result<u8, ShopError> {
        outlive(&lock).await;
        Ok(7)
    }
    #[distributed_lock(key = "k", locker = locks, guard = lock, on_busy = 1, on_error = |err| {
        assert!(err.is_lost() && !err.is_completed());
        2
    })]
    fn answered(locks: &Locker) -> BoxFuture<'_, u8> {
        Box::pin(async move {
            outlive(&lock).await;
            7
        })
    }
    let locks = locker().await;
    events::listen();
    unit(&locks).await;
    assert_error_event();
    assert_eq!(option(&locks).await, None);
    assert_error_event();
    assert!(matches!(result(&locks).await, Err(ShopError::Lock(error)) if error.is_lost()));
    assert_eq!(answered(&locks).await, 2);
    assert!(events::take().iter().all(|event| event.level == Level::WARN));
}

/// Goal: a body whose last step ends after the deadline. Method: the clock jumps in that step.
#[tokio::test(start_paused = true)]
async fn completion_after_the_loss_is_an_error_naming_both() {
    #[distributed_lock(key = "k", locker = locks, on_lost = cancel)]
    async fn result(locks: &Locker, journal: &Journal) -> Result<u8, LockError> {
        skip_a_lease();
        journal.write("done");
        Ok(7)
    }
    #[distributed_lock(key = "k", locker = locks, renew, on_busy = 1, on_error = |err| {
        assert!(err.is_lost() && err.is_completed());
        2
    })]
    fn answered<'a>(locks: &'a Locker, journal: &'a Journal) -> BoxFuture<'a, u8> {
        Box::pin(async move {
            skip_a_lease();
            journal.write("done");
            7
        })
    }
    #[distributed_lock(key = "k", locker = locks)]
    async fn option(locks: &Locker, journal: &Journal) -> Option<u8> {
        skip_a_lease();
        journal.write("done");
        Some(7)
    }
    let (locks, journal) = (locker().await, Journal::default());
    let error = result(&locks, &journal).await.unwrap_err();
    assert!(error.is_lost() && error.is_completed(), "{error}");
    assert!(error.to_string().contains("disLock:k"), "{error}");
    assert_eq!(answered(&locks, &journal).await, 2);
    events::listen();
    assert_eq!(option(&locks, &journal).await, None);
    let logged = events::take();
    assert!(logged.iter().any(|event| event.level == Level::ERROR), "{logged:#?}");
    assert_eq!(journal.entries(), ["done"; 3]);
}

/// Moves the paused clock on, within one poll.
fn skip_a_lease() {
    let advance = pin!(tokio::time::advance(LEASE + LEASE / 10));
    // The first poll moves the clock; the rest of it is for tasks that wait.
    assert!(now(poll_once(advance)).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_duration_is_evaluated_once_before_the_body() {
    #[distributed_lock(
        key = "k",
        locker = locks,
        expire = noted(&journal, "expire", 10),
        renew,
        max_hold = noted(&journal, "max_hold", 60),
        min_hold = noted(&journal, "min_hold", 1)
    )]
    async fn call(locks: &Locker, journal: Journal) -> Option<()> {
        pause().await;
        journal.write("body");
        Some(())
    }
    fn noted(journal: &Journal, option: &str, seconds: u64) -> Duration {
        journal.write(option);
        Duration::from_secs(seconds)
    }
    let (locks, journal) = (locker().await, Journal::default());
    assert!(call(&locks, journal.clone()).await.is_some());
    assert_eq!(journal.entries(), ["expire", "max_hold", "min_hold", "body"]);
    // The minimum is not over; a busy call needs them as well, and no more often.
    let journal = Journal::default();
    assert!(call(&locks, journal.clone()).await.is_none());
    assert_eq!(journal.entries(), ["expire", "max_hold", "min_hold"]);
}
