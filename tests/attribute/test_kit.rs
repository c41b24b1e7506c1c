//! The users' testing kit: other holders, and the rare cases.

mod scopes;

use std::future::{Future, pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use lockable_runtime::testing::TestLocks;
use lockable_runtime::{Lease, LockError, distributed_lock};
use tokio::time::Instant;

use crate::support::{elapse, pause, poll_once};

#[distributed_lock(key = "order:{id}")]
async fn ship(id: u32, packed: impl Future<Output = ()>) -> Result<u32, LockError> {
    packed.await;
    Ok(id)
}

#[distributed_lock(key = "order:{id}", wait)]
async fn ship_in_turn(id: u32, packed: impl Future<Output = ()>) -> Result<u32, LockError> {
    packed.await;
    Ok(id)
}

#[distributed_lock(key = "order:{id}")]
fn ship_sync(id: u32, pack: impl FnOnce()) -> Result<u32, LockError> {
    pack();
    Ok(id)
}

const KEY: &str = "order:7";

/// What became of the calls for the lock.
#[track_caller]
fn assert_counts(locks: &TestLocks, granted: usize, busy: usize, failed: usize) {
    let counts = locks.counts(KEY);
    assert_eq!((counts.granted, counts.busy, counts.failed), (granted, busy, failed));
}

/// Runs a test's calls, in which no time goes by: paused time would, where anything waited for it.
async fn at_once<T>(calls: impl Future<Output = T>) -> T {
    let start = Instant::now();
    let value = calls.await;
    assert_eq!(start.elapsed(), Duration::ZERO);
    value
}

#[tokio::test(start_paused = true)]
async fn another_holder_has_its_lock_until_it_is_dropped() {
    let locks = TestLocks::new();
    let other = locks.hold(KEY);
    assert!(format!("{other:?}").contains("disLock:order:7"));
    assert_eq!(locks.holder(KEY).unwrap().request_id(), Some("another holder"));
    assert!(locks.locker().lock(KEY).try_acquire().await.unwrap_err().is_busy());
    assert!(locks.locker().lock("order:8").try_acquire().await.is_ok());
    drop(other);
    assert_eq!(locks.holder(KEY), None);
    let guard = locks.locker().lock(KEY).try_acquire().await.unwrap();
    assert_eq!(locks.holder(KEY).unwrap().request_id(), None);
    guard.release().await.unwrap();
}

/// Goal: a guard that is dropped frees its lock at once, though no one awaits its release.
#[tokio::test(start_paused = true)]
async fn a_lock_is_free_when_its_guard_was_dropped() {
    let locks = TestLocks::new();
    drop(locks.locker().lock(KEY).try_acquire().await.unwrap());
    drop(locks.hold(KEY));
    let mut call = Box::pin(locks.scope(ship(7, pending())));
    assert!(poll_once(call.as_mut()).await.is_none());
    drop(call);
    drop(locks.hold(KEY));
}

#[tokio::test(start_paused = true)]
async fn another_holder_has_no_lease_that_ends() {
    let locks = TestLocks::new();
    let _other = locks.hold(KEY);
    elapse(Duration::from_secs(100 * 365 * 24 * 3_600)).await;
    assert!(locks.scope(ship(7, ready(()))).await.unwrap_err().is_busy());
}

#[tokio::test(start_paused = true)]
async fn another_holders_drop_gives_its_lock_to_a_waiter() {
    let locks = TestLocks::new();
    let other = locks.hold(KEY);
    let end = async {
        assert_eq!(locks.waiting(KEY), 2);
        drop(other);
    };
    let calls = (locks.scope(ship_in_turn(7, pause())), locks.scope(ship_in_turn(7, pause())));
    let (one, two, ()) = at_once(async { tokio::join!(biased; calls.0, calls.1, end) }).await;
    assert_eq!((one.unwrap(), two.unwrap(), locks.waiting(KEY)), (7, 7, 0));
    assert_counts(&locks, 2, 2, 0);
}

#[tokio::test(start_paused = true)]
async fn only_the_next_acquisition_fails() {
    let locks = TestLocks::new();
    locks.fail_next(KEY);
    let without = || async { unreachable!("runs without a lock") };
    assert!(locks.scope(ship(8, ready(()))).await.is_ok());
    let error = locks.scope(ship(7, without())).await.unwrap_err();
    assert!(error.is_unavailable() && error.key() == Some("disLock:order:7"), "{error}");
    assert!(locks.scope(ship(7, ready(()))).await.is_ok());
    assert_counts(&locks, 1, 0, 1);
    assert_eq!(locks.counts("order:8").failed, 0);
}

#[tokio::test(start_paused = true)]
async fn failures_add_up_of_one_key_and_of_any() {
    let locks = TestLocks::new();
    locks.fail_next(KEY);
    locks.fail_next(KEY);
    locks.fail_next_of_any();
    let mut outcomes = Vec::new();
    for id in [7, 7, 8, 7, 8] {
        outcomes.push(locks.scope(ship_in_turn(id, ready(()))).await.is_ok());
    }
    assert_eq!(outcomes, [false, false, false, true, true]);
    assert_eq!((locks.counts(KEY).failed, locks.counts("order:8").failed), (2, 1));
}

/// Calls that would ask nothing, because their own locker holds the lock, fail as well.
#[tokio::test(start_paused = true)]
async fn a_staged_failure_comes_before_what_the_locker_knows() {
    let locks = TestLocks::new();
    let guard = locks.locker().lock("order:7").acquire().await.unwrap();
    for _ in 0..2 {
        locks.fail_next(KEY);
    }
    let outcomes = [
        locks.scope(ship(7, ready(()))).await,
        locks.scope(ship_in_turn(7, ready(()))).await,
        locks.scope(ship(7, ready(()))).await,
    ];
    let [once, in_turn, busy] = outcomes.map(Result::unwrap_err);
    assert!(once.is_unavailable() && in_turn.is_unavailable() && busy.is_busy());
    assert_counts(&locks, 1, 1, 2);
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_leaves_nothing_behind() {
    let locks = TestLocks::new();
    locks.fail_next(KEY);
    assert!(locks.sync_scope(|| ship_sync(7, || unreachable!())).unwrap_err().is_unavailable());
    assert_eq!(locks.holder(KEY), None);
    let _other = locks.hold(KEY);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_loses_its_own_lock_stops() {
    let locks = TestLocks::new();
    let packed = async {
        locks.lose(KEY);
        pause().await;
        unreachable!("continues without its lock")
    };
    assert!(at_once(locks.scope(ship(7, packed))).await.unwrap_err().is_lost());
}

#[tokio::test(start_paused = true)]
async fn guards_and_sync_bodies_know_their_loss() {
    #[distributed_lock(key = "order:{id}", guard = lock)]
    fn ship(id: u32, pack: impl FnOnce(&Lease)) -> Result<u32, LockError> {
        pack(&lock);
        Ok(id)
    }
    let locks = TestLocks::new();
    let guard = locks.locker().lock(KEY).try_acquire().await.unwrap();
    locks.lose(KEY);
    assert!(guard.lease().is_lost() && !guard.lease().is_held());
    assert!(guard.release().await.unwrap_err().is_lost());
    let pack = |lock: &Lease| {
        assert!(lock.is_held());
        locks.lose(KEY);
        assert!(!lock.is_held());
    };
    let error = locks.sync_scope(|| ship(7, pack)).unwrap_err();
    assert!(error.is_lost() && error.is_body_finished());
}

#[tokio::test(start_paused = true)]
async fn a_body_ends_in_order_before_its_lease_does() {
    #[distributed_lock(key = "order:{id}", expire = 10, guard = lock)]
    async fn ship(id: u32) -> Result<(u32, Duration), LockError> {
        let left = lock.ending_within(Duration::from_secs(2)).await;
        assert!(lock.is_held());
        Ok((id, left))
    }
    let locks = TestLocks::new();
    let (id, left) = locks.scope(ship(7)).await.unwrap();
    assert!(id == 7 && left <= Duration::from_secs(2) && !left.is_zero(), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_waiter_has_a_lost_lock_next() {
    let locks = TestLocks::new();
    let holder = locks.scope(ship(7, pending()));
    let next = locks.scope(ship_in_turn(7, ready(())));
    let calls = async { tokio::join!(biased; holder, next, async { locks.lose(KEY) }) };
    let (lost, shipped, ()) = at_once(calls).await;
    let error = lost.unwrap_err();
    assert!(error.is_lost() && !error.is_body_finished(), "{error}");
    assert_eq!(shipped.unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn another_holder_may_lose_its_lock_too() {
    let locks = TestLocks::new();
    let other = locks.hold(KEY);
    locks.lose(KEY);
    let guard = locks.locker().lock(KEY).try_acquire().await.unwrap();
    drop(other);
    assert!(locks.holder(KEY).is_some());
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_by_what_became_of_them() {
    let locks = TestLocks::new();
    let inside = async {
        assert!(ship(7, ready(())).await.unwrap_err().is_held_by_caller());
        let second = ship(7, ready(()));
        assert!(tokio::spawn(locks.scope(second)).await.unwrap().unwrap_err().is_busy());
    };
    locks.scope(ship(7, inside)).await.unwrap();
    assert_counts(&locks, 1, 1, 0);
    assert_eq!(locks.counts("order:8"), TestLocks::new().counts(KEY));
}

/// Goal: calls of one line are counted one by one, though the store is asked once for many of them.
#[tokio::test(start_paused = true)]
async fn a_crowd_is_counted_call_by_call() {
    let locks = TestLocks::new();
    let other = locks.hold(KEY);
    let calls: Vec<_> =
        (0..50).map(|_| tokio::spawn(locks.scope(ship_in_turn(7, pause())))).collect();
    while locks.waiting(KEY) < 50 {
        pause().await;
    }
    drop(other);
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_counts(&locks, 50, 50, 0);
}

#[tokio::test(start_paused = true)]
async fn keys_with_another_prefix_are_other_locks() {
    #[distributed_lock(key = "order:{id}", prefix = "shop:")]
    async fn ship_prefixed(id: u32) -> Option<u32> {
        Some(id)
    }
    let locks = TestLocks::new();
    let shop = locks.with_prefix("shop:");
    let other = shop.hold(KEY);
    assert!(format!("{other:?}").contains("shop:order:7"));
    assert_eq!(locks.scope(ship_prefixed(7)).await, None);
    assert_eq!(locks.holder(KEY), None);
    drop(other);
    assert_eq!(shop.scope(ship_prefixed(7)).await, Some(7));
    assert_eq!((shop.counts(KEY).granted, locks.counts(KEY).granted), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn paused_time_moves_leases_renewals_and_wait_limits() {
    #[distributed_lock(key = "order:{id}", renew)]
    async fn ship_renewed(id: u32, packed: impl Future<Output = ()>) -> Result<u32, LockError> {
        packed.await;
        Ok(id)
    }
    #[distributed_lock(key = "order:{id}", wait = "10m")]
    async fn ship_soon(id: u32) -> Result<u32, LockError> {
        Ok(id)
    }
    let locks = TestLocks::new();
    let long = Duration::from_secs(600);
    assert!(locks.scope(ship(7, elapse(long))).await.unwrap_err().is_lost());
    assert_eq!(locks.scope(ship_renewed(7, elapse(long))).await.unwrap(), 7);
    let _other = locks.hold(KEY);
    assert!(locks.scope(ship_soon(7)).await.unwrap_err().is_wait_limit_reached());
}

/// What a test means that could not mean it: the message, which names the lock.
fn complaint(mistake: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(mistake)).expect_err("it means nothing");
    panic.downcast_ref::<String>().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn a_contradictory_test_fails_at_once() {
    let locks = TestLocks::new();
    assert_eq!(complaint(|| locks.lose(KEY)), "the lock `disLock:order:7` has no holder");
    let _other = locks.hold(KEY);
    let complained = complaint(|| drop(locks.hold(KEY)));
    assert_eq!(complained, "the lock `disLock:order:7` has a holder already");
    assert!(complaint(|| locks.fail_next("")).contains("the key is empty"));
    assert!(complaint(|| drop(locks.hold("a}b"))).contains("hash tag"));
}

#[distributed_lock(key = "report:{day}", once = "1d")]
async fn report(day: u32) -> Result<u32, LockError> {
    Ok(day)
}

#[tokio::test(start_paused = true)]
async fn a_run_is_done_until_it_is_lost() {
    let locks = TestLocks::new();
    locks.done("report:7");
    at_once(async {
        let error = locks.scope(report(7)).await.unwrap_err();
        assert!(error.is_done() && error.is_busy(), "{error}");
        assert_eq!(locks.scope(report(8)).await.unwrap(), 8);
        assert!(locks.scope(report(8)).await.unwrap_err().is_done());
        let plain = locks.locker().lock("report:7").try_acquire().await;
        assert!(plain.unwrap_err().is_busy());
    })
    .await;
    elapse(Duration::from_secs(30 * 86_400)).await;
    assert!(locks.scope(report(7)).await.unwrap_err().is_done());
    locks.lose("report:7");
    assert_eq!(locks.scope(report(7)).await.unwrap(), 7);
    assert!(catch_unwind(AssertUnwindSafe(|| locks.done("report:7"))).is_err(), "it is done");
}

#[distributed_lock(key = "export", permits = 2, renew)]
async fn export(written: impl Future<Output = ()>) -> Result<(), LockError> {
    written.await;
    Ok(())
}

#[distributed_lock(key = "export", permits = all(2))]
async fn migrate() -> Result<(), LockError> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn other_holders_have_permits_until_they_are_dropped() {
    let locks = TestLocks::new();
    let mut others = locks.hold_permits("export", 2);
    at_once(async {
        assert!(locks.scope(export(ready(()))).await.unwrap_err().is_busy());
        drop(others.remove(0));
        locks.scope(export(ready(()))).await.unwrap();
        assert!(locks.scope(migrate()).await.unwrap_err().is_busy());
        others.clear();
        locks.scope(migrate()).await.unwrap();
    })
    .await;
    assert_eq!(locks.holder("{export}#1"), None);
    let counts = locks.counts("{export}");
    assert_eq!((counts.busy, counts.failed), (2, 0));
    assert!(catch_unwind(AssertUnwindSafe(|| locks.hold_permits("export", 65))).is_err());
}

#[tokio::test(start_paused = true)]
async fn one_permit_is_lost_or_revoked_alone() {
    for is_lost in [true, false] {
        let locks = TestLocks::new();
        let end = async {
            pause().await;
            let name = "{export}#2";
            if is_lost {
                locks.lose(name);
            } else {
                locks.revoke(name, "why");
            }
        };
        let first = export(async { elapse(Duration::from_secs(1)).await });
        let (first, second, ()) =
            tokio::join!(locks.scope(first), locks.scope(export(pending())), end);
        first.unwrap();
        let error = second.unwrap_err();
        assert!(error.is_lost() == is_lost && error.is_revoked() != is_lost, "{error}");
    }
}
