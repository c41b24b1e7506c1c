//! What a lost body can still do, poll by poll.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use lockable_runtime::{LockError, OnLost};
use lockable_tests::{Server, wait};
use tracing::Level;

use crate::events;
use crate::support::{LIMIT, Runs, ample, server_and_locker};

const LEASE: Duration = Duration::from_secs(2);

/// Goal: no step after a refusal, however the poll comes about.
/// Method: the future is polled by hand, once before the renewal is refused, and once after.
#[test]
fn the_body_is_not_polled_after_a_refusal() {
    events::listen();
    let server = Server::start();
    let locker = ample(&server.url()).connect_lazy().unwrap();
    let (runs, of_body) = (Runs::default(), Arc::new(()));
    let is_there = Arc::downgrade(&of_body);
    let body = async {
        counted(&runs).await;
        drop(of_body);
    };
    let mut call = pin!(locker.lock("loss:polled").expire(12 * LEASE).renew().run(body));
    let polls = begin(call.as_mut(), &runs);
    // The call is not polled meanwhile: the look at the lock, or its renewal, finds out.
    server.admin().set("disLock:loss:polled", "another's");
    let logged = || events::count("disLock:loss:polled", Level::WARN, "the lock was lost");
    wait::until(LIMIT, || logged() == 1);
    assert!(ended(call.as_mut()).to_string().contains("another holder"));
    assert_eq!(runs.count(), polls);
    assert_eq!(is_there.strong_count(), 0, "the body is dropped");
}

/// Goal: no step after the deadline.
/// Method: the future is polled by hand, and not at all while its deadline passes.
#[test]
fn the_body_is_not_polled_after_the_deadline() {
    let server = Server::start();
    let locker = ample(&server.url()).connect_lazy().unwrap();
    let runs = Runs::default();
    let mut call = pin!(locker.lock("k").expire(LEASE).run(counted(&runs)));
    let polls = begin(call.as_mut(), &runs);
    block_thread(LEASE);
    let error = ended(call.as_mut());
    assert!(error.is_lost() && !error.is_body_finished(), "{error}");
    assert_eq!(runs.count(), polls);
}

/// A body that counts how often it is polled, and stays.
fn counted(runs: &Runs) -> impl Future<Output = ()> {
    poll_fn(|_| {
        runs.add();
        Poll::Pending
    })
}

/// Polls a call until its body is polled, and returns how often that was.
fn begin<F: Future>(mut call: Pin<&mut F>, runs: &Runs) -> u64 {
    let mut context = Context::from_waker(Waker::noop());
    wait::until(LIMIT, || {
        assert!(call.as_mut().poll(&mut context).is_pending());
        runs.count() > 0
    });
    runs.count()
}

/// Why a call has ended, which its next poll says.
fn ended<F: Future<Output = Result<(), LockError>>>(call: Pin<&mut F>) -> LockError {
    match call.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome.unwrap_err(),
        Poll::Pending => panic!("the call has not ended"),
    }
}

#[tokio::test]
async fn a_completion_after_the_loss_is_distinguished() {
    events::listen();
    let (_server, locker) = server_and_locker().await;
    let outcome = locker.lock("loss:completed").expire(LEASE).run(async { blocked() }).await;
    let error = outcome.unwrap_err();
    assert!(error.is_lost() && error.is_body_finished(), "{error}");
    assert_logged("disLock:loss:completed");
}

#[tokio::test]
async fn a_body_allowed_to_finish_logs_the_loss() {
    events::listen();
    let (_server, locker) = server_and_locker().await;
    let request = locker.lock("loss:finished").expire(LEASE).on_lost(OnLost::Finish);
    assert_eq!(request.run(async { blocked() }).await.unwrap(), 7);
    assert_logged("disLock:loss:finished");
}

#[tokio::test]
async fn a_body_allowed_to_finish_continues_after_a_refusal() {
    events::listen();
    let (server, locker) = server_and_locker().await;
    let request = locker.lock("loss:continues").expire(3 * LEASE).renew().on_lost(OnLost::Finish);
    let body = async {
        server.admin().flush();
        let logged = || events::count("disLock:loss:continues", Level::WARN, "the lock was lost");
        wait::until_async(LIMIT, async || logged() == 1).await;
        7
    };
    assert_eq!(request.run(body).await.unwrap(), 7);
    assert_logged("disLock:loss:continues");
}

/// A body that blocks its thread for longer than its lease.
fn blocked() -> u32 {
    block_thread(LEASE + LEASE / 4);
    7
}

/// A loss, and that the body completed all the same, are logged once each.
fn assert_logged(key: &str) {
    let logged = events::about(key);
    assert_eq!(events::count(key, Level::WARN, "the lock was lost"), 1, "{logged:?}");
    assert_eq!(events::count(key, Level::ERROR, "completed after the lock"), 1, "{logged:?}");
}

#[expect(clippy::disallowed_methods, reason = "a blocked thread is the subject")]
fn block_thread(duration: Duration) {
    thread::sleep(duration);
}
