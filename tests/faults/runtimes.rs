//! One locker from many runtimes, and from none.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use lockable_runtime::{LockError, Locker, distributed_lock};
use lockable_tests::{Admin, Server, wait};
use tokio::runtime::{Builder, Runtime};
use tokio::task::spawn_blocking;

use crate::support::{KEY, LIMIT, patient};

#[test]
fn a_static_locker_outlives_the_runtimes_that_use_it() {
    static LOCKER: OnceLock<Locker> = OnceLock::new();
    #[distributed_lock(key = "k", expire = 60, locker = LOCKER.get().unwrap())]
    async fn decorated(n: u32) -> Result<u32, LockError> {
        tokio::task::yield_now().await;
        Ok(n)
    }
    let server = Server::start();
    LOCKER.set(patient(&server.url()).connect_lazy().unwrap()).unwrap();
    for n in 0..20 {
        let runtime = if n % 2 == 0 { one_thread() } else { two_threads() };
        assert_eq!(runtime.block_on(decorated(n)).unwrap(), n);
    }
}

#[test]
fn a_locker_outlives_the_runtime_that_connected_it() {
    let server = Server::start();
    let locker = one_thread().block_on(patient(&server.url()).connect()).unwrap();
    two_threads().block_on(pair(&locker));
    block_on(pair(&locker));
}

#[test]
fn ended_runtimes_leave_no_connections() {
    let server = Server::start();
    let locker = patient(&server.url()).connect_lazy().unwrap();
    let admin = server.admin();
    for n in 0..30 {
        let runtime = if n % 2 == 0 { one_thread() } else { two_threads() };
        runtime.block_on(pair(&locker));
        drop(runtime);
        // One for the background at most, and the look itself.
        wait::until(LIMIT, || clients(&admin) <= 2);
    }
}

#[test]
fn eight_runtimes_side_by_side_exclude_each_other() {
    const TURNS: usize = 20;
    let server = Server::start();
    let locker = patient(&server.url()).connect_lazy().unwrap();
    let inside = std::sync::atomic::AtomicBool::new(false);
    let turns = async || {
        let mut done = 0;
        while done < TURNS {
            let Some(guard) = locker.lock("k").try_acquire().await.unwrap() else { continue };
            assert!(!inside.swap(true, std::sync::atomic::Ordering::SeqCst));
            tokio::task::yield_now().await;
            assert!(inside.swap(false, std::sync::atomic::Ordering::SeqCst));
            guard.release().await.unwrap();
            done += 1;
        }
    };
    thread::scope(|scope| {
        for n in 0..8 {
            let runtime = if n % 2 == 0 { one_thread() } else { two_threads() };
            scope.spawn(move || runtime.block_on(turns()));
        }
    });
    assert_eq!(server.admin().get(KEY), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_task_can_lock_beside_many_threads() {
    lock_from_blocking_tasks().await;
}

#[tokio::test]
async fn a_blocking_task_can_lock_beside_one_thread() {
    lock_from_blocking_tasks().await;
}

async fn lock_from_blocking_tasks() {
    let server = Server::start();
    let locker = patient(&server.url()).connect().await.unwrap();
    for _ in 0..10 {
        let locker = locker.clone();
        let handle = tokio::runtime::Handle::current();
        spawn_blocking(move || handle.block_on(pair(&locker))).await.unwrap();
    }
}

#[test]
fn a_call_needs_no_runtime() {
    let server = Server::start();
    let locker = block_on(patient(&server.url()).connect()).unwrap();
    for _ in 0..20 {
        block_on(pair(&locker));
        assert_eq!(block_on(locker.lock("k").try_run(async { 7 })).unwrap(), Some(7));
    }
    let guard = block_on(locker.lock("k").try_acquire()).unwrap().unwrap();
    assert!(block_on(locker.lock("k").try_acquire()).unwrap().is_none());
    block_on(guard.release()).unwrap();
}

#[test]
fn a_guard_may_be_released_in_another_runtime() {
    let server = Server::start();
    let locker = patient(&server.url()).connect_lazy().unwrap();
    let (first, second) = (one_thread(), two_threads());
    for _ in 0..5 {
        let guard = first.block_on(locker.lock("k").try_acquire()).unwrap().unwrap();
        second.block_on(guard.release()).unwrap();
        let guard = second.block_on(locker.lock("k").try_acquire()).unwrap().unwrap();
        block_on(guard.release()).unwrap();
        let guard = block_on(locker.lock("k").try_acquire()).unwrap().unwrap();
        first.block_on(guard.release()).unwrap();
    }
}

/// A call that moves between executors while it is under way.
#[test]
fn a_call_may_move_between_runtimes() {
    let server = Server::start();
    let locker = patient(&server.url()).connect_lazy().unwrap();
    let (first, second) = (two_threads(), two_threads());
    first.block_on(pair(&locker));
    for polls in 0..4 {
        let mut call = Box::pin(locker.lock("k").acquire());
        first.block_on(async {
            for _ in 0..polls {
                if let Poll::Ready(guard) = poll_once(call.as_mut()).await {
                    guard.unwrap().release().await.unwrap();
                    call = Box::pin(locker.lock("k").acquire());
                }
            }
        });
        drop(second.block_on(call).unwrap());
        drop(block_on(locker.lock("k").acquire()).unwrap());
    }
}

async fn poll_once<F: Future + Unpin>(mut future: F) -> Poll<F::Output> {
    std::future::poll_fn(|cx| Poll::Ready(std::pin::Pin::new(&mut future).poll(cx))).await
}

async fn pair(locker: &Locker) {
    locker.lock("k").try_acquire().await.unwrap().unwrap().release().await.unwrap();
}

fn clients(admin: &Admin) -> usize {
    let list: String = admin.command(&["CLIENT", "LIST"]);
    list.lines().count()
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
