//! The users' testing kit: a locker in the place of the process-wide one, and the rare cases.

use std::future::{Future, pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use lockable_runtime::testing::{
    LockerScope, OtherHolder, TestLocks, inherit, inherit_sync, scope, sync_scope,
};
use lockable_runtime::{Lease, LockError, Locker, distributed_lock};

use tokio::time::Instant;

use crate::support::{elapse, is_free, now, pause, poll_once};

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

#[distributed_lock(key = "order:{id}")]
fn ship_boxed(id: u32) -> Pin<Box<dyn Future<Output = Option<u32>> + Send>> {
    Box::pin(ready(Some(id)))
}

const KEY: &str = "order:7";

/// Whether the process-wide locker is this one here: its lock is taken while that one's is held.
async fn is_seen(locks: &TestLocks) -> bool {
    let other = locks.hold(KEY);
    let outcome = ship(7, ready(())).await;
    drop(other);
    outcome.is_err_and(|error| error.is_busy())
}

/// Runs a test's calls, in which no time goes by: paused time would, where anything waited for it.
async fn at_once<T>(calls: impl Future<Output = T>) -> T {
    let start = Instant::now();
    let value = calls.await;
    assert_eq!(start.elapsed(), Duration::ZERO);
    value
}

#[test]
fn bounds() {
    fn check<T: Send + Sync + 'static>() {}
    check::<TestLocks>();
    check::<OtherHolder>();
    check::<LockerScope<()>>();
}

#[tokio::test]
async fn functions_of_every_kind_use_the_scopes_locker() {
    let locks = TestLocks::new();
    let calls = async {
        let _other = locks.hold(KEY);
        assert!(ship(7, ready(())).await.unwrap_err().is_busy());
        assert!(ship_sync(7, || ()).unwrap_err().is_busy());
        assert_eq!(ship_boxed(7).await, None);
    };
    locks.scope(calls).await;
    locks.scope(ship(7, ready(()))).await.unwrap();
    locks.scope(ship_boxed(7)).await.unwrap();
    locks.sync_scope(|| ship_sync(7, || ())).unwrap();
}

#[tokio::test]
async fn any_locker_may_be_that_of_a_scope() {
    let locker = Locker::builder().url("memory://").prefix("shop:").connect_lazy().unwrap();
    let packed = async { assert!(!is_free(&locker, KEY).await) };
    scope(&locker, ship(7, packed)).await.unwrap();
    sync_scope(&locker, || ship_sync(7, || assert!(!now(is_free(&locker, KEY))))).unwrap();
}

#[tokio::test]
async fn the_innermost_scope_counts_and_ends() {
    let (outer, inner) = (TestLocks::new(), TestLocks::new());
    outer
        .scope(async {
            assert!(is_seen(&outer).await && !is_seen(&inner).await);
            assert!(inner.scope(is_seen(&inner)).await);
            assert!(is_seen(&outer).await && !is_seen(&inner).await);
            inner.sync_scope(|| assert!(now(is_seen(&inner))));
            assert!(is_seen(&outer).await && !is_seen(&inner).await);
        })
        .await;
}

#[tokio::test]
async fn a_panic_ends_its_scope() {
    let (outer, inner) = (TestLocks::new(), TestLocks::new());
    outer
        .scope(async {
            let panics = || inner.sync_scope(|| panic!("through the scope"));
            let unwound: thread::Result<()> = catch_unwind(AssertUnwindSafe(panics));
            assert!(unwound.is_err() && is_seen(&outer).await);
            let mut call = Box::pin(inner.scope(async {
                pause().await;
                panic!("through the scope");
            }));
            assert!(poll_once(call.as_mut()).await.is_none());
            let unwound = catch_unwind(AssertUnwindSafe(|| now(call.as_mut())));
            assert!(unwound.is_err() && is_seen(&outer).await);
        })
        .await;
}

/// Goal: siblings on one task do not see one another's scopes. Method: each yields in the middle, so
/// that their polls alternate.
#[tokio::test]
async fn siblings_in_a_join_have_each_their_own_scope() {
    let (one, other) = (TestLocks::new(), TestLocks::new());
    let looks = async |locks: &TestLocks| {
        for _ in 0..5 {
            assert!(is_seen(locks).await);
            pause().await;
        }
    };
    tokio::join!(one.scope(looks(&one)), other.scope(looks(&other)));
    assert_eq!((one.counts(KEY).busy, other.counts(KEY).busy), (5, 5));
}

#[tokio::test]
async fn a_scope_reaches_into_select() {
    let locks = TestLocks::new();
    locks
        .scope(async {
            let mut seen = pin!(async {
                pause().await;
                is_seen(&locks).await
            });
            let seen = loop {
                tokio::select! {
                    seen = &mut seen => break seen,
                    () = pause() => {}
                }
            };
            assert!(seen);
        })
        .await;
}

/// Goal: tests that run side by side do not exclude one another. Method: both bodies wait at the
/// same time under the lock of the same name, which a barrier makes sure of.
#[test]
fn tests_on_two_threads_share_no_lock() {
    let barrier = Arc::new(Barrier::new(2));
    let test = |barrier: Arc<Barrier>| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let locks = TestLocks::new();
        let packed = async {
            barrier.wait();
        };
        runtime.block_on(locks.scope(ship(7, packed))).unwrap();
        locks.counts(KEY).granted
    };
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || test(barrier))
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_inherits_is_inside_of_the_scope() {
    let locks = TestLocks::new();
    locks
        .scope(async {
            tokio::spawn(inherit(ship(7, pause()))).await.unwrap().unwrap();
            let call = inherit_sync(|| ship_sync(7, || ()));
            tokio::task::spawn_blocking(call).await.unwrap().unwrap();
            let call = inherit_sync(|| ship_sync(7, || ()));
            thread::spawn(call).join().unwrap().unwrap();
            tokio::spawn(inherit(async { tokio::spawn(inherit(ship(7, pause()))).await }))
                .await
                .unwrap()
                .unwrap()
                .unwrap();
        })
        .await;
    assert_eq!(locks.counts(KEY).granted, 4);
}

#[tokio::test]
async fn inheriting_from_no_scope_changes_nothing() {
    let locks = TestLocks::new();
    let (call, work) = (inherit(ship(7, ready(()))), inherit_sync(|| ship_sync(7, || ())));
    locks.scope(call).await.unwrap();
    locks.sync_scope(work).unwrap();
    assert_eq!(locks.counts(KEY).granted, 2);
}

#[tokio::test]
async fn a_memory_locker_has_its_own_store() {
    let (one, other) = (Locker::in_memory(), Locker::in_memory());
    let _guard = one.clone().lock(KEY).acquire().await.unwrap();
    assert!(!is_free(&one, KEY).await && is_free(&other, KEY).await);
    let named = Locker::connect("memory://").await.unwrap();
    assert!(is_free(&named, KEY).await);
}

#[tokio::test]
async fn another_holder_has_its_lock_until_it_is_dropped() {
    let locks = TestLocks::new();
    let other = locks.hold(KEY);
    assert_eq!(other.key().as_str(), "disLock:order:7");
    assert_eq!(locks.holder(KEY).unwrap().identity(), Some("another holder"));
    assert!(locks.locker().lock(KEY).try_acquire().await.unwrap().is_none());
    assert!(locks.locker().lock("order:8").try_acquire().await.unwrap().is_some());
    drop(other);
    assert_eq!(locks.holder(KEY), None);
    let guard = locks.locker().lock(KEY).try_acquire().await.unwrap().unwrap();
    assert_eq!(locks.holder(KEY).unwrap().identity(), None);
    guard.release().await.unwrap();
}

/// Goal: a guard that is dropped frees its lock at once, though no one awaits its release.
#[tokio::test]
async fn a_lock_is_free_when_its_guard_was_dropped() {
    let locks = TestLocks::new();
    drop(locks.locker().lock(KEY).try_acquire().await.unwrap().unwrap());
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
    let counts = locks.counts(KEY);
    assert_eq!((counts.granted, counts.busy, counts.failed), (2, 2, 0));
}

#[test]
fn sync_calls_wait_for_another_holder_too() {
    #[distributed_lock(key = "order:{id}", wait)]
    fn ship(id: u32) -> Result<u32, LockError> {
        Ok(id)
    }
    let locks = TestLocks::new();
    let other = locks.hold(KEY);
    let (shipped, is_shipped) = mpsc::channel();
    let call = locks.sync_scope(|| inherit_sync(move || shipped.send(ship(7)).unwrap()));
    let thread = thread::spawn(call);
    while locks.waiting(KEY) == 0 {
        thread::yield_now();
    }
    assert!(is_shipped.try_recv().is_err());
    drop(other);
    assert_eq!(is_shipped.recv().unwrap().unwrap(), 7);
    thread.join().unwrap();
}

#[tokio::test]
async fn only_the_next_acquisition_fails() {
    let locks = TestLocks::new();
    locks.fail_next(KEY);
    let without = || async { unreachable!("runs without a lock") };
    assert!(locks.scope(ship(8, ready(()))).await.is_ok());
    let error = locks.scope(ship(7, without())).await.unwrap_err();
    assert!(error.is_unavailable() && error.key() == Some("disLock:order:7"), "{error}");
    assert!(locks.scope(ship(7, ready(()))).await.is_ok());
    let counts = locks.counts(KEY);
    assert_eq!((counts.granted, counts.busy, counts.failed), (1, 0, 1));
    assert_eq!(locks.counts("order:8").failed, 0);
}

#[tokio::test]
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
#[tokio::test]
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
    let counts = locks.counts(KEY);
    assert_eq!((counts.granted, counts.busy, counts.failed), (1, 1, 2));
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_failed_call_leaves_nothing_behind() {
    let locks = TestLocks::new();
    locks.fail_next(KEY);
    assert!(locks.sync_scope(|| ship_sync(7, || unreachable!())).unwrap_err().is_unavailable());
    assert_eq!(locks.holder(KEY), None);
    let _other = locks.hold(KEY);
}

#[tokio::test(start_paused = true)]
async fn a_lost_body_is_stopped_where_it_waits() {
    let locks = TestLocks::new();
    let loss = async { locks.lose(KEY) };
    let call = locks.scope(ship(7, pending()));
    let (shipped, ()) = at_once(async { tokio::join!(biased; call, loss) }).await;
    let error = shipped.unwrap_err();
    assert!(error.is_lost() && !error.is_completed());
    assert_eq!(locks.holder(KEY), None);
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

#[tokio::test]
async fn guards_and_sync_bodies_know_their_loss() {
    #[distributed_lock(key = "order:{id}", guard = lock)]
    fn ship(id: u32, pack: impl FnOnce(&Lease)) -> Result<u32, LockError> {
        pack(&lock);
        Ok(id)
    }
    let locks = TestLocks::new();
    let guard = locks.locker().lock(KEY).try_acquire().await.unwrap().unwrap();
    locks.lose(KEY);
    assert!(guard.is_lost() && !guard.is_held());
    assert!(guard.release().await.unwrap_err().is_lost());
    let pack = |lock: &Lease| {
        assert!(lock.is_held());
        locks.lose(KEY);
        assert!(!lock.is_held());
    };
    let error = locks.sync_scope(|| ship(7, pack)).unwrap_err();
    assert!(error.is_lost() && error.is_completed());
}

#[tokio::test(start_paused = true)]
async fn the_first_waiter_has_a_lost_lock_next() {
    let locks = TestLocks::new();
    let holder = locks.scope(ship(7, pending()));
    let next = locks.scope(ship_in_turn(7, ready(())));
    let calls = async { tokio::join!(biased; holder, next, async { locks.lose(KEY) }) };
    let (lost, shipped, ()) = at_once(calls).await;
    assert!(lost.unwrap_err().is_lost());
    assert_eq!(shipped.unwrap(), 7);
}

#[tokio::test]
async fn another_holder_may_lose_its_lock_too() {
    let locks = TestLocks::new();
    let other = locks.hold(KEY);
    locks.lose(KEY);
    let guard = locks.locker().lock(KEY).try_acquire().await.unwrap().unwrap();
    drop(other);
    assert!(locks.holder(KEY).is_some());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn calls_are_counted_by_what_became_of_them() {
    let locks = TestLocks::new();
    let inside = async {
        assert!(ship(7, ready(())).await.unwrap_err().is_held_by_caller());
        let second = ship(7, ready(()));
        assert!(tokio::spawn(locks.scope(second)).await.unwrap().unwrap_err().is_busy());
    };
    locks.scope(ship(7, inside)).await.unwrap();
    let counts = locks.counts(KEY);
    assert_eq!((counts.granted, counts.busy, counts.failed), (1, 1, 0));
    assert_eq!(locks.counts("order:8"), TestLocks::new().counts(KEY));
}

/// Goal: calls of one line are counted one by one, though the store is asked once for many of them.
#[tokio::test]
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
    let counts = locks.counts(KEY);
    assert_eq!((counts.granted, counts.busy, counts.failed), (50, 50, 0));
}

#[tokio::test]
async fn keys_with_another_prefix_are_other_locks() {
    #[distributed_lock(key = "order:{id}", prefix = "shop:")]
    async fn ship_prefixed(id: u32) -> Option<u32> {
        Some(id)
    }
    let locks = TestLocks::new();
    let shop = locks.with_prefix("shop:");
    let other = shop.hold(KEY);
    assert_eq!(other.key().as_str(), "shop:order:7");
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

#[tokio::test]
async fn a_contradictory_test_fails_at_once() {
    let locks = TestLocks::new();
    assert_eq!(complaint(|| locks.lose(KEY)), "the lock `disLock:order:7` has no holder");
    let _other = locks.hold(KEY);
    let complained = complaint(|| drop(locks.hold(KEY)));
    assert_eq!(complained, "the lock `disLock:order:7` has a holder already");
    assert!(complaint(|| locks.fail_next("")).contains("the key is empty"));
    assert!(complaint(|| drop(locks.hold("a}b"))).contains("hash tag"));
}
