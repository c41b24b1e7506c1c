//! Ways out of a body.

use std::future::pending;
use std::time::Duration;

use lockable_runtime::{LockError, Locker, distributed_lock};
use lockable_tests::{Server, wait};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::runtimes::{block_on, one_thread, two_threads};
use crate::support::{KEY, LIMIT, connect, freed, freed_blocking, patient};

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
    let server = Server::start();
    let locker = connect(&server.url()).await;
    assert!(matches!(leave(&locker, &server, Exit::Value).await, Ok(1)));
    assert_eq!(server.admin().get(KEY), None);
    assert!(matches!(leave(&locker, &server, Exit::Return).await, Ok(2)));
    assert_eq!(server.admin().get(KEY), None);
    assert!(matches!(leave(&locker, &server, Exit::QuestionMark).await, Err(Error::Own)));
    assert_eq!(server.admin().get(KEY), None);
}

#[tokio::test]
async fn a_panicking_body_frees_the_lock() {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    let (ours, theirs) = (std::sync::Arc::new(server), locker.clone());
    let server = std::sync::Arc::clone(&ours);
    let call = tokio::spawn(async move { leave(&theirs, &ours, Exit::Panic).await });
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
    let server = Server::start();
    let locker = connect(&server.url()).await;
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
    let server = Server::start();
    let locker = connect(&server.url()).await;
    let (started, has_started) = oneshot::channel();
    tokio::select! {
        _ = stay(locker, started) => panic!("the body stays"),
        has_started = has_started => has_started.unwrap(),
    }
    freed(&server).await;
}

#[tokio::test]
async fn a_timeout_around_a_call_frees_the_lock() {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    let (started, mut has_started) = oneshot::channel();
    let call = tokio::time::timeout(Duration::from_millis(300), stay(locker, started));
    assert!(call.await.is_err());
    // The body had started, where the machine was not too busy for it.
    drop(has_started.try_recv());
    freed(&server).await;
}

#[test]
fn a_dropped_runtime_frees_its_bodies_locks() {
    for runtime in [one_thread(), two_threads()] {
        body_in(runtime, drop);
    }
}

#[test]
fn a_background_shutdown_frees_its_bodies_locks() {
    for runtime in [one_thread(), two_threads()] {
        body_in(runtime, Runtime::shutdown_background);
    }
}

/// Ends a runtime in which a body runs.
fn body_in(runtime: Runtime, end: impl FnOnce(Runtime)) {
    let server = Server::start();
    let locker = patient(&server.url()).connect_lazy().unwrap();
    let (started, has_started) = oneshot::channel();
    let call = runtime.spawn(stay(locker.clone(), started));
    runtime.block_on(has_started).unwrap();
    assert!(server.admin().get(KEY).is_some());
    end(runtime);
    freed_blocking(&server);
    wait::until(LIMIT, || call.is_finished());
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
    let server = Server::start();
    let locker = connect(&server.url()).await;
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
