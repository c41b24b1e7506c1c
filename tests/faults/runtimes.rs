//! One locker from many runtimes, and from none.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use lockable_runtime::{FencingToken, LockError, Locker, distributed_lock};
use lockable_tests::{Sections, Server, wait};
use rstest::rstest;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::spawn_blocking;

use crate::support::{KEY, LIMIT, LONG};
use crate::waiting::support::ample;

#[test]
fn a_static_locker_outlives_the_runtimes_that_use_it() {
    static LOCKER: OnceLock<Locker> = OnceLock::new();
    #[distributed_lock(key = "k", expire = 60, locker = LOCKER.get().unwrap())]
    async fn decorated(n: u32) -> Result<u32, LockError> {
        tokio::task::yield_now().await;
        Ok(n)
    }
    let server = Server::start();
    LOCKER.set(ample(&server.url()).connect_lazy().unwrap()).unwrap();
    let admin = server.admin();
    for n in 0..20 {
        assert_eq!(either(n).block_on(decorated(n)).unwrap(), n);
        // Ended runtimes leave no connections: one for the background at most, and the look itself.
        let clients = || admin.command::<String>(&["CLIENT", "LIST"]).lines().count();
        wait::until(LIMIT, || clients() <= 2);
    }
}

#[test]
fn a_locker_outlives_the_runtime_that_connected_it() {
    let server = Server::start();
    let locker = one_thread().block_on(ample(&server.url()).connect()).unwrap();
    two_threads().block_on(pair(&locker));
    block_on(pair(&locker));
}

#[test]
fn eight_runtimes_side_by_side_exclude_each_other() {
    const TURNS: usize = 20;
    let server = Server::start();
    let locker = ample(&server.url()).connect_lazy().unwrap();
    let sections = Sections::default();
    let turns = async || {
        for _ in 0..TURNS {
            let guard = locker.lock("k").wait(LONG).acquire().await.unwrap();
            sections.enter(&guard);
            tokio::task::yield_now().await;
            sections.leave(&guard);
            guard.release().await.unwrap();
        }
    };
    thread::scope(|scope| {
        for n in 0..8 {
            scope.spawn(move || either(n).block_on(turns()));
        }
    });
    sections.assert_sound();
    assert_eq!(server.admin().get(KEY), None);
}

#[rstest]
#[case::of_one_thread(one_thread())]
#[case::of_two_threads(two_threads())]
fn a_blocking_task_can_lock_beside_a_runtime(#[case] runtime: Runtime) {
    let server = Server::start();
    let locker = ample(&server.url()).connect_lazy().unwrap();
    runtime.block_on(async {
        for _ in 0..10 {
            let (locker, handle) = (locker.clone(), Handle::current());
            spawn_blocking(move || handle.block_on(pair(&locker))).await.unwrap();
        }
    });
}

#[test]
fn a_call_needs_no_runtime() {
    let server = Server::start();
    let locker = block_on(ample(&server.url()).connect()).unwrap();
    for _ in 0..20 {
        block_on(pair(&locker));
        assert_eq!(block_on(locker.lock("k").try_run(async { 7 })).unwrap(), 7);
    }
    let guard = block_on(locker.lock("k").try_acquire()).unwrap();
    assert!(block_on(locker.lock("k").try_acquire()).unwrap_err().is_busy());
    block_on(guard.release()).unwrap();
}

#[test]
fn a_guard_may_be_released_in_another_runtime() {
    let server = Server::start();
    let locker = ample(&server.url()).connect_lazy().unwrap();
    let (first, second) = (one_thread(), two_threads());
    for _ in 0..5 {
        let guard = first.block_on(locker.lock("k").try_acquire()).unwrap();
        second.block_on(guard.release()).unwrap();
        let guard = second.block_on(locker.lock("k").try_acquire()).unwrap();
        block_on(guard.release()).unwrap();
        let guard = block_on(locker.lock("k").try_acquire()).unwrap();
        first.block_on(guard.release()).unwrap();
    }
}

/// A call that moves between executors while it is under way.
#[test]
fn a_call_may_move_between_runtimes() {
    let server = Server::start();
    let locker = ample(&server.url()).connect_lazy().unwrap();
    let (first, second) = (two_threads(), two_threads());
    first.block_on(pair(&locker));
    for polls in 0..4 {
        let mut call = Box::pin(locker.lock("k").acquire());
        first.block_on(async {
            for _ in 0..polls {
                if let Poll::Ready(guard) = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await
                {
                    guard.unwrap().release().await.unwrap();
                    call = Box::pin(locker.lock("k").acquire());
                }
            }
        });
        drop(second.block_on(call).unwrap());
        drop(block_on(locker.lock("k").acquire()).unwrap());
    }
}

/// Acquires the lock, which is free, and releases it.
pub(crate) async fn pair(locker: &Locker) -> FencingToken {
    let guard = locker.lock("k").try_acquire().await.unwrap();
    let token = guard.lease().fencing_token();
    guard.release().await.unwrap();
    token
}

/// One kind of runtime and the other, in turn.
fn either(n: u32) -> Runtime {
    if n.is_multiple_of(2) { one_thread() } else { two_threads() }
}

pub(crate) fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

pub(crate) fn two_threads() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Runs a future on this thread, which is all that an executor needs to be.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
