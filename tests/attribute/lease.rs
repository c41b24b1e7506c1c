//! `renew`, and what `on_lost` does with a body whose lock is lost.

use std::future::{pending, poll_fn};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use lockable_runtime::__internals::MemoryStore;
use lockable_runtime::{Lease, LockError, LockGuard, Locker, distributed_lock};

use crate::by_return_type::by_return_type;
use crate::events;
use crate::support::{
    BoxFuture, Journal, LEASE, elapse, hold, is_free, locker, pause, poll_once, skip_a_lease,
    start_and_drop,
};

/// Works through many leases, and looks after each.
async fn work_long(locks: &Locker, lock: &Lease) {
    for _ in 0..10 {
        elapse(LEASE).await;
        assert!(lock.is_held() && !is_free(locks, "k"));
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
        assert!(is_free(locks, "k"));
        elapse(LEASE).await;
        assert!(!lease.is_held() && !lease.is_lost());
        assert!(is_free(locks, "k"));
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
    assert!(is_free(&locks, "k"));
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
    assert!(error.is_lost() && !error.is_body_finished(), "{error}");
    assert_eq!(journal.entries(), ["transaction"]);
}

/// Goal: after a pause of the process no further step of the body runs, although it was woken.
/// Method: the clock jumps over the deadline between two polls, and the body wakes itself in each.
#[tokio::test(start_paused = true)]
async fn a_body_is_not_polled_after_its_deadline() {
    #[distributed_lock(key = "k", expire = 3, locker = locks)]
    async fn counts(locks: &Locker, polls: &mut u32) -> Result<(), LockError> {
        poll_fn(|cx| {
            *polls += 1;
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        })
        .await;
        Ok(())
    }
    let (locks, mut polls) = (locker().await, 0);
    let mut call = Box::pin(counts(&locks, &mut polls));
    assert!(poll_once(call.as_mut()).await.is_none());
    tokio::time::advance(Duration::from_millis(2_960)).await;
    assert!(poll_once(call.as_mut()).await.is_none());
    tokio::time::advance(Duration::from_millis(8)).await;
    let outcome = poll_once(call.as_mut()).await.expect("the call continues");
    assert!(outcome.unwrap_err().is_lost());
    drop(call);
    assert_eq!(polls, 2);
}

#[tokio::test(start_paused = true)]
async fn a_lost_body_is_dropped_before_its_call_ends() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn call(locks: &Locker, journal: &Journal) {
        let _transaction = journal.drops("transaction");
        pending::<()>().await;
    }
    let (locks, journal) = (locker().await, Journal::default());
    call(&locks, &journal).await;
    journal.write("returned");
    assert_eq!(journal.entries(), ["transaction", "returned"]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_lock_is_an_error_by_return_type() {
    let locks = locker().await;
    let error = by_return_type!(async &locks, [] pending::<()>().await).error();
    assert!(error.is_lost() && !error.is_body_finished(), "{error}");
    let error = by_return_type!(async &locks, [on_lost = cancel] pending::<()>().await).error();
    assert!(error.is_lost() && !error.is_body_finished(), "{error}");
}

/// Goal: a body whose last step ends after the deadline. Method: the clock jumps in that step.
#[tokio::test(start_paused = true)]
async fn completion_after_the_loss_is_an_error_naming_both() {
    let locks = locker().await;
    for error in [
        by_return_type!(async &locks, [renew, on_lost = cancel] skip_a_lease()).error(),
        by_return_type!(sync &locks, [] skip_a_lease()).error(),
    ] {
        assert!(error.is_lost() && error.is_body_finished(), "{error}");
        assert!(error.to_string().contains("disLock:k"), "{error}");
    }
}

/// Waits until the lock is lost, and then as long again.
async fn outlive(lock: &Lease) {
    assert!(lock.is_held() && !lock.is_lost());
    assert!(lock.lost().await.is_lost());
    elapse(LEASE).await;
    assert!(!lock.is_held() && lock.is_lost());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_may_finish_gives_its_value() {
    let locks = locker().await;
    by_return_type!(async &locks, [on_lost = finish, guard = lock] outlive(&lock).await)
        .assert_finished(1);
    by_return_type!(sync &locks, [on_lost = finish, guard = lock] {
        skip_a_lease();
        assert!(!lock.is_held() && lock.is_lost());
    })
    .assert_finished(1);
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
    assert!(next.lease().is_held() && !is_free(&locks, "k"));
    next.release().await.unwrap();
}

/// A function of one kind that writes down when its options are evaluated.
macro_rules! noting {
    ($name:ident: [$($async:tt)?]) => {
        #[distributed_lock(
            key = "k",
            locker = locks,
            expire = noted(&journal, "expire", 10),
            renew,
            max_hold = noted(&journal, "max_hold", 60),
            min_hold = noted(&journal, "min_hold", 1)
        )]
        $($async)? fn $name(locks: &Locker, journal: Journal) -> Option<()> {
            journal.write("body");
            Some(())
        }
    };
}

#[tokio::test(start_paused = true)]
async fn a_duration_is_evaluated_once_before_the_body() {
    noting!(call: [async]);
    noting!(sync: []);
    fn noted(journal: &Journal, option: &str, seconds: u64) -> Duration {
        journal.write(option);
        Duration::from_secs(seconds)
    }
    let (once, locks, elsewhere) =
        (["expire", "max_hold", "min_hold", "body"], locker().await, locker().await);
    // The second call is busy, because the minimum is not over; it needs them as well, and no more often.
    for (length, journal) in [(4, Journal::default()), (3, Journal::default())] {
        assert_eq!(call(&locks, journal.clone()).await.is_some(), length == 4);
        assert_eq!(sync(&elsewhere, journal.clone()).is_some(), length == 4);
        assert_eq!(journal.entries(), [&once[..length], &once[..length]].concat());
    }
}
