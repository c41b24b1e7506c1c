//! A locker in the place of the process-wide one, for a future or a closure.

use std::future::{pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::thread;

use lockable_runtime::testing::{TestLocks, inherit, inherit_sync, scope, sync_scope};
use lockable_runtime::{Locker, distributed_lock};
use tokio::runtime::Builder;

use super::{KEY, assert_counts, ship, ship_sync};
use crate::support::{BoxFuture, is_free, now, pause, poll_once};

#[distributed_lock(key = "order:{id}")]
fn ship_boxed(id: u32) -> BoxFuture<'static, Option<u32>> {
    Box::pin(ready(Some(id)))
}

/// Whether the process-wide locker is this one here: its lock is taken while that one's is held.
async fn is_seen(locks: &TestLocks) -> bool {
    let other = locks.hold(KEY);
    let outcome = ship(7, ready(())).await;
    drop(other);
    outcome.is_err_and(|error| error.is_busy())
}

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
async fn any_locker_may_be_that_of_a_scope() {
    let locker = Locker::builder().url("memory://").prefix("shop:").connect_lazy().unwrap();
    let packed = async { assert!(!is_free(&locker, KEY)) };
    scope(&locker, ship(7, packed)).await.unwrap();
    sync_scope(&locker, || ship_sync(7, || assert!(!is_free(&locker, KEY)))).unwrap();
}

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
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
#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
async fn a_scope_reaches_into_select() {
    let locks = TestLocks::new();
    let calls = async {
        tokio::select! {
            () = pending() => unreachable!("never ends"),
            seen = async { pause().await; is_seen(&locks).await } => assert!(seen),
        }
    };
    locks.scope(calls).await;
}

/// Goal: tests that run side by side do not exclude one another. Method: both bodies wait at the
/// same time under the lock of the same name, which a barrier makes sure of.
#[test]
fn tests_on_two_threads_share_no_lock() {
    let barrier = Barrier::new(2);
    let test = || {
        let runtime = Builder::new_current_thread().build().unwrap();
        let locks = TestLocks::new();
        let packed = async {
            barrier.wait();
        };
        runtime.block_on(locks.scope(ship(7, packed))).unwrap();
        assert_counts(&locks, 1, 0, 0);
    };
    thread::scope(|scope| {
        scope.spawn(test);
        scope.spawn(test);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_inherits_is_inside_of_the_scope() {
    let locks = TestLocks::new();
    let calls = async {
        tokio::spawn(inherit(ship(7, pause()))).await.unwrap().unwrap();
        let call = || inherit_sync(|| ship_sync(7, || ()));
        tokio::task::spawn_blocking(call()).await.unwrap().unwrap();
        thread::spawn(call()).join().unwrap().unwrap();
        let twice = inherit(async { tokio::spawn(inherit(ship(7, pause()))).await });
        tokio::spawn(twice).await.unwrap().unwrap().unwrap();
    };
    locks.scope(calls).await;
    assert_counts(&locks, 4, 0, 0);
}

#[tokio::test(start_paused = true)]
async fn inheriting_from_no_scope_changes_nothing() {
    let locks = TestLocks::new();
    let (call, work) = (inherit(ship(7, ready(()))), inherit_sync(|| ship_sync(7, || ())));
    locks.scope(call).await.unwrap();
    locks.sync_scope(work).unwrap();
    assert_counts(&locks, 2, 0, 0);
}

#[tokio::test(start_paused = true)]
async fn a_memory_locker_has_its_own_store() {
    let (one, other) = (Locker::in_memory(), Locker::in_memory());
    let _guard = one.clone().lock(KEY).acquire().await.unwrap();
    assert!(!is_free(&one, KEY) && is_free(&other, KEY));
    let named = Locker::connect("memory://").await.unwrap();
    assert!(is_free(&named, KEY));
}
