//! Ways to lose a guard that is held by hand.

use std::cell::RefCell;
use std::thread;

use lockable_runtime::{LockError, LockGuard, Locker};
use lockable_tests::Server;
use rstest::rstest;

use crate::runtimes::{block_on, one_thread, two_threads};
use crate::support::{KEY, connect_ample, freed, freed_blocking, server_and_locker};

#[rstest]
#[case::in_its_runtime(drop)]
#[case::on_a_thread(drop_on_a_thread)]
#[case::in_a_thread_local(drop_in_a_thread_local)]
#[case::by_a_panic(drop_by_a_panic)]
#[tokio::test]
async fn a_dropped_guard_frees_its_lock(#[case] drop: fn(LockGuard)) {
    let (server, guard) = held().await;
    drop(guard);
    freed(&server).await;
}

fn drop_on_a_thread(guard: LockGuard) {
    thread::spawn(move || drop(guard)).join().unwrap();
}

/// Thread-locals are dropped when the thread's own are partly gone.
fn drop_in_a_thread_local(guard: LockGuard) {
    thread_local! {
        static GUARD: RefCell<Option<LockGuard>> = const { RefCell::new(None) };
    }
    thread::spawn(move || GUARD.with_borrow_mut(|slot| *slot = Some(guard))).join().unwrap();
}

fn drop_by_a_panic(guard: LockGuard) {
    let thread = thread::spawn(move || {
        let _guard = guard;
        panic!("the thread of the test panics");
    });
    thread.join().unwrap_err();
}

#[test]
fn a_guard_that_outlives_its_runtime_frees_the_lock() {
    for runtime in [one_thread(), two_threads()] {
        let (server, guard) = runtime.block_on(held());
        drop(runtime);
        drop(guard);
        freed_blocking(&server);
    }
}

#[test]
fn a_guard_that_outlives_its_runtime_can_be_released() {
    for runtime in [one_thread(), two_threads()] {
        let (server, guard) = runtime.block_on(held());
        drop(runtime);
        block_on(guard.release()).unwrap();
        assert_eq!(server.admin().get(KEY), None);
    }
}

/// Another holder came after the lock was deleted from outside.
#[tokio::test]
async fn an_overtaken_guard_leaves_the_other_lock_alone() {
    let (server, guard) = held().await;
    let admin = server.admin();
    admin.set(KEY, "theirs");
    assert!(guard.release().await.unwrap_err().is_lost());
    assert_eq!(admin.get(KEY).as_deref(), Some("theirs"));
    admin.del(KEY);

    let locker = connect_ample(&server.url()).await;
    let guard = locker.lock("k").acquire().await.unwrap();
    admin.set(KEY, "theirs");
    drop(guard);
    // The drop's release goes before the next call on the same key.
    assert!(locker.lock("k").try_acquire().await.unwrap_err().is_busy());
    assert_eq!(admin.get(KEY).as_deref(), Some("theirs"));
}

#[tokio::test]
async fn a_call_after_a_dropped_guard_needs_one_try() {
    let (server, locker) = server_and_locker().await;
    for turn in 0..200 {
        let guard = locker.lock("k").try_acquire().await;
        drop(guard.unwrap_or_else(|error| panic!("{error} at turn {turn}")));
    }
    freed(&server).await;
}

/// As above, where the calls come from other tasks and threads than the drops.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_after_a_drop_elsewhere_needs_one_try() {
    let (_server, locker) = server_and_locker().await;
    for turn in 0..100 {
        let guard = acquire_elsewhere(&locker).await;
        let guard = guard.unwrap_or_else(|error| panic!("{error} at turn {turn}"));
        if turn % 2 == 0 {
            thread::spawn(move || drop(guard)).join().unwrap();
        } else {
            tokio::spawn(async move { drop(guard) }).await.unwrap();
        }
    }
}

async fn acquire_elsewhere(locker: &Locker) -> Result<LockGuard, LockError> {
    let call = locker.lock("k").try_acquire();
    tokio::spawn(call).await.unwrap()
}

async fn held() -> (Server, LockGuard) {
    let server = Server::start();
    let guard = connect_ample(&server.url()).await.lock("k").acquire().await.unwrap();
    assert!(server.admin().get(KEY).is_some());
    (server, guard)
}
