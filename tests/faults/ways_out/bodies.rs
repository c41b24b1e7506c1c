//! Ways out of a body.

use std::future::pending;
use std::sync::Arc;

use lockable_runtime::{LockError, Locker, distributed_lock};
use lockable_tests::{Server, wait};
use rstest::rstest;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::runtimes::{block_on, one_thread, two_threads};
use crate::support::{KEY, LIMIT, ample, connect_ample, freed, server_and_locker};

/// How a body is left.
#[derive(Clone, Copy, Debug)]
enum Exit {
    Value,
    Return,
    QuestionMark,
    Panic,
}

#[distributed_lock(key = "k", expire = 60, locker = locker.clone())]
async fn leave(locker: &Locker, server: &Server, exit: Exit) -> Result<u32, Error> {
    assert!(server.admin().get(KEY).is_some());
    tokio::task::yield_now().await;
    match exit {
        Exit::Value => {}
        Exit::Return => return Ok(2),
        Exit::QuestionMark => Err(Error::Own)?,
        Exit::Panic => panic!("the body of the test panics"),
    }
    Ok(1)
}

#[tokio::test]
async fn a_body_that_returns_in_any_way_has_released() {
    let (server, locker) = server_and_locker().await;
    assert!(matches!(leave(&locker, &server, Exit::Value).await, Ok(1)));
    assert_eq!(server.admin().get(KEY), None);
    assert!(matches!(leave(&locker, &server, Exit::Return).await, Ok(2)));
    assert_eq!(server.admin().get(KEY), None);
    assert!(matches!(leave(&locker, &server, Exit::QuestionMark).await, Err(Error::Own)));
    assert_eq!(server.admin().get(KEY), None);
}

#[tokio::test]
async fn a_panicking_body_frees_the_lock() {
    let server = Arc::new(Server::start());
    let locker = connect_ample(&server.url()).await;
    let (theirs, looked_at) = (locker.clone(), Arc::clone(&server));
    let call = tokio::spawn(async move { leave(&theirs, &looked_at, Exit::Panic).await });
    assert!(call.await.unwrap_err().is_panic());
    freed(&server).await;
    let ran = locker.lock("k").run(async { panic!("the body of the test panics") });
    assert!(tokio::spawn(ran).await.unwrap_err().is_panic());
    freed(&server).await;
}

/// Says that it has started, and never ends.
#[distributed_lock(key = "k", expire = 60, locker = locker.clone())]
async fn stay(locker: Locker, started: oneshot::Sender<()>) -> Result<(), LockError> {
    started.send(()).unwrap();
    pending().await
}

#[tokio::test]
async fn an_aborted_task_frees_the_lock() {
    let (server, locker) = server_and_locker().await;
    let (started, has_started) = oneshot::channel();
    let call = tokio::spawn(stay(locker, started));
    has_started.await.unwrap();
    assert!(server.admin().get(KEY).is_some());
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    freed(&server).await;
}

#[tokio::test]
async fn a_branch_that_was_not_selected_frees_the_lock() {
    let (server, locker) = server_and_locker().await;
    let (started, has_started) = oneshot::channel();
    tokio::select! {
        _ = stay(locker, started) => panic!("the body stays"),
        has_started = has_started => has_started.unwrap(),
    }
    freed(&server).await;
}

/// A task has a guard, and another one a body under its lock.
#[rstest]
#[case::dropped(drop)]
#[case::shut_down_in_the_background(Runtime::shutdown_background)]
fn a_runtime_that_ends_frees_its_locks(
    #[case] end: fn(Runtime),
    #[values(one_thread, two_threads)] runtime: fn() -> Runtime,
) {
    let (server, runtime) = (Server::start(), runtime());
    let (admin, locker) = (server.admin(), ample(&server.url()).connect_lazy().unwrap());
    let (started, has_started) = oneshot::channel();
    let call = runtime.spawn(stay(locker.clone(), started));
    let (held, is_held) = oneshot::channel();
    let guard = locker.lock("guard").acquire();
    runtime.spawn(async move {
        let _guard = guard.await.unwrap();
        held.send(()).unwrap();
        pending::<()>().await;
    });
    runtime.block_on(async { tokio::try_join!(has_started, is_held) }).unwrap();
    assert_eq!(admin.keys("disLock:*").len(), 2);
    end(runtime);
    wait::until(LIMIT, || admin.keys("disLock:*").is_empty() && call.is_finished());
    block_on(locker.lock("k").run(async {})).unwrap();
}

/// The body's own things are dropped before the lock is free.
#[tokio::test]
async fn a_dropped_body_is_gone_before_its_lock() {
    struct LooksAt<'a>(&'a Server);
    impl Drop for LooksAt<'_> {
        fn drop(&mut self) {
            assert!(self.0.admin().get(KEY).is_some(), "the lock went first");
        }
    }
    let (server, locker) = server_and_locker().await;
    let body = async |is_left: bool| {
        let _transaction = LooksAt(&server);
        tokio::task::yield_now().await;
        if !is_left {
            pending::<()>().await;
        }
    };
    locker.lock("k").run(body(true)).await.unwrap();
    let mut call = Box::pin(locker.lock("k").run(body(false)));
    tokio::select! {
        biased;
        _ = &mut call => panic!("the body stays"),
        () = wait::until_async(LIMIT, async || server.admin().get(KEY).is_some()) => {}
    }
    drop(call);
    freed(&server).await;
}

#[derive(Debug)]
enum Error {
    Own,
    #[expect(dead_code, reason = "shown when an unexpected error makes a test fail")]
    Lock(LockError),
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}
