//! What a lost body can still do, poll by poll.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use lockable_runtime::{Locker, OnLost};
use lockable_tests::{Server, wait};
use tracing::Level;

use crate::events;
use crate::support::{LIMIT, Runs, connect, patient};

const LEASE: Duration = Duration::from_millis(300);

/// Goal: no step after a refusal, however the poll comes about.
/// Method: the future is polled by hand, once before the renewal is refused, and once after.
#[test]
fn the_body_is_not_polled_after_a_refusal() {
    events::listen();
    let server = Server::start();
    let locker = patient(&server.url()).connect_lazy().unwrap();
    let (runs, dropped) = (Runs::default(), AtomicBool::new(false));
    let body = async {
        let _dropped = OnDrop(&dropped);
        poll_fn(|_| {
            runs.add();
            Poll::<()>::Pending
        })
        .await;
    };
    let mut call = pin!(locker.lock("loss:polled").expire(10 * LEASE).renew().run(body));
    let mut context = Context::from_waker(Waker::noop());
    wait::until(LIMIT, || {
        assert!(call.as_mut().poll(&mut context).is_pending());
        runs.count() > 0
    });
    let polls = runs.count();
    // The call is not polled meanwhile: the look at the lock, or its renewal, finds out.
    server.admin().set("disLock:loss:polled", "another's");
    let logged = || events::count("disLock:loss:polled", Level::WARN, "the lock was lost");
    wait::until(LIMIT, || logged() == 1);
    let Poll::Ready(outcome) = call.as_mut().poll(&mut context) else {
        panic!("the call has not ended")
    };
    assert!(outcome.unwrap_err().to_string().contains("another holder"));
    assert_eq!(runs.count(), polls);
    assert!(dropped.load(Ordering::SeqCst));
}

/// Goal: no step after the deadline.
/// Method: the future is polled by hand, and not at all while its deadline passes.
#[test]
fn the_body_is_not_polled_after_the_deadline() {
    let server = Server::start();
    let locker = patient(&server.url()).connect_lazy().unwrap();
    let runs = Runs::default();
    let body = poll_fn(|_| {
        runs.add();
        Poll::<()>::Pending
    });
    let mut call = pin!(locker.lock("k").expire(LEASE).run(body));
    let mut context = Context::from_waker(Waker::noop());
    wait::until(LIMIT, || {
        assert!(call.as_mut().poll(&mut context).is_pending());
        runs.count() > 0
    });
    let polls = runs.count();
    block_thread(LEASE);
    let Poll::Ready(outcome) = call.as_mut().poll(&mut context) else {
        panic!("the call has not ended")
    };
    let error = outcome.unwrap_err();
    assert!(error.is_lost() && !error.is_completed(), "{error}");
    assert_eq!(runs.count(), polls);
}

#[tokio::test]
async fn a_completion_after_the_loss_is_distinguished() {
    events::listen();
    let (_server, locker) = server_and_locker().await;
    let outcome = locker.lock("loss:completed").expire(LEASE).run(blocked(LEASE)).await;
    let error = outcome.unwrap_err();
    assert!(error.is_lost() && error.is_completed(), "{error}");
    assert_logged("disLock:loss:completed");
}

#[tokio::test]
async fn a_body_allowed_to_finish_logs_the_loss() {
    events::listen();
    let (_server, locker) = server_and_locker().await;
    let request = locker.lock("loss:finished").expire(LEASE).on_lost(OnLost::Finish);
    assert_eq!(request.run(blocked(LEASE)).await.unwrap(), 7);
    assert_logged("disLock:loss:finished");
}

#[tokio::test]
async fn a_body_allowed_to_finish_continues_after_a_refusal() {
    events::listen();
    let (server, locker) = server_and_locker().await;
    let lease = LEASE * 3;
    let request = locker.lock("loss:continues").expire(lease).renew().on_lost(OnLost::Finish);
    let body = async {
        server.admin().flush();
        let logged = || events::count("disLock:loss:continues", Level::WARN, "the lock was lost");
        wait::until_async(LIMIT, async || logged() == 1).await;
        7
    };
    assert_eq!(request.run(body).await.unwrap(), 7);
    assert_logged("disLock:loss:continues");
}

async fn server_and_locker() -> (Server, Locker) {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    (server, locker)
}

/// A body that blocks its thread for longer than its lease.
fn blocked(lease: Duration) -> impl Future<Output = u32> {
    poll_fn(move |_| {
        block_thread(lease + lease / 2);
        Poll::Ready(7)
    })
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

struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
