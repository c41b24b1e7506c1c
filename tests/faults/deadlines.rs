//! Every command has a deadline, and so have connecting and waiting; the body does not run.

use lockable_runtime::LockErrorKind;
use std::future::{Future, poll_fn};
use std::net::TcpListener;
use std::task::Poll;
use std::time::{Duration, Instant};

use lockable_runtime::{LockError, Locker, distributed_lock};
use lockable_tests::{Server, wait};

use crate::cancellation::late_requests::landed;
use crate::support::{
    COMMAND, KEY, LIMIT, LONG, Runs, connect, decorated, freed, impatient, now, patient,
    server_and_proxy,
};
use crate::waiting::support::queued;

#[tokio::test]
async fn an_acquire_at_a_stalled_server_ends() {
    let (server, locker) = stalled().await;
    let runs = Runs::default();
    let url = server.url();
    assert_unavailable(&wait::ends(run(&locker, &runs)).await.unwrap_err(), &url);
    assert_unavailable(&wait::ends(decorated(&locker, &runs)).await.unwrap_err(), &url);
    assert_eq!(runs.count(), 0);
    server.resume();
    landed(&locker).await;
    freed(&server).await;
}

#[tokio::test]
async fn the_default_deadline_is_one_second() {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    server.pause();
    let start = now();
    let default = Duration::from_secs(1);
    let error = wait::ends(locker.lock("k").acquire()).await.unwrap_err();
    assert!(start.elapsed() >= default, "{:?}", start.elapsed());
    assert_unavailable(&error, &server.url());
    server.resume();
}

/// One after the other they would take longer than a test may.
#[tokio::test]
async fn deadlines_of_a_hundred_calls_run_in_parallel() {
    const CALLS: u32 = 100;
    const DEADLINE: Duration = Duration::from_secs(2);
    assert!(CALLS * DEADLINE > LIMIT);
    let server = Server::start();
    let locker = impatient(&server.url()).command_deadline(DEADLINE).connect().await.unwrap();
    server.pause();
    let calls: Vec<_> = (0..CALLS).map(|_| tokio::spawn(locker.lock("k").try_acquire())).collect();
    wait::ends(async {
        for call in calls {
            assert_unavailable(&call.await.unwrap().unwrap_err(), &server.url());
        }
    })
    .await;
    server.resume();
    landed(&locker).await;
    freed(&server).await;
}

#[tokio::test]
async fn a_release_at_a_stalled_server_is_deferred() {
    let server = Server::start();
    let locker = impatient(&server.url()).connect().await.unwrap();
    let guard = locker.lock("k").acquire().await.unwrap();
    server.pause();
    let error = wait::ends(guard.release()).await.unwrap_err();
    assert_unavailable(&error, &server.url());
    server.resume();
    freed(&server).await;
}

#[tokio::test]
async fn a_stalled_release_does_not_cost_the_bodys_value() {
    let server = Server::start();
    let locker = impatient(&server.url()).connect().await.unwrap();
    let body = async {
        server.pause();
        7
    };
    assert_eq!(wait::ends(locker.lock("k").run(body)).await.unwrap(), 7);
    server.resume();
    freed(&server).await;
}

/// The call waits for its release, here in vain.
#[tokio::test]
async fn a_sync_call_ends_no_earlier_than_its_release() {
    #[distributed_lock(key = "k", locker = locker)]
    fn stall(locker: &Locker, server: &Server) -> Result<Instant, LockError> {
        server.pause();
        Ok(now())
    }
    let server = Server::start();
    let locker = impatient(&server.url()).connect().await.unwrap();
    let stalled = stall(&locker, &server).unwrap();
    assert!(stalled.elapsed() >= COMMAND);
    server.resume();
    freed(&server).await;
}

#[tokio::test]
async fn connecting_to_a_stalled_server_ends_at_its_deadline() {
    let server = Server::start();
    server.pause();
    connecting_ends(&server.url()).await;
}

#[tokio::test]
async fn a_silent_listener_is_left_at_the_deadline() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    connecting_ends(&format!("redis://{}", silent.local_addr().unwrap())).await;
}

#[tokio::test]
async fn a_missing_handshake_is_given_up_at_the_deadline() {
    let (_server, proxy) = server_and_proxy();
    proxy.hold_replies();
    connecting_ends(&proxy.url()).await;
}

/// Where it is asked for, and where a call needs it.
async fn connecting_ends(url: &str) {
    let error = wait::ends(impatient(url).connect()).await.unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains(url), "{error}");
    let (locker, runs) = (impatient(url).connect_lazy().unwrap(), Runs::default());
    assert_unavailable(&wait::ends(run(&locker, &runs)).await.unwrap_err(), url);
    assert_eq!(runs.count(), 0);
}

/// Goal: each call ends, after two command deadlines and one to connect at most.
/// Method: each call comes after an unanswered one for the same lock, whose release is tried first; after
/// three without an answer the connection is opened again, which is not answered either.
#[tokio::test]
async fn calls_on_a_hanging_server_end_within_their_bound() {
    let (server, locker) = stalled().await;
    let runs = Runs::default();
    for _ in 0..4 {
        let error = wait::ends(run(&locker, &runs)).await.unwrap_err();
        assert_unavailable(&error, &server.url());
    }
    assert_eq!(runs.count(), 0);
    server.resume();
}

/// Goal: a sync call ends that comes behind a dropped async call.
/// Method: the answer to the async one comes over the connection of this runtime, which the sync call
/// blocks.
#[tokio::test]
async fn a_sync_call_behind_a_dropped_one_ends() {
    #[distributed_lock(key = "k", locker = locker.clone())]
    fn sync(locker: &Locker, runs: &Runs) -> Result<(), LockError> {
        runs.add();
        Ok(())
    }
    let (server, runs) = (Server::start(), Runs::default());
    let locker = impatient(&server.url()).connect().await.unwrap();
    let mut given_up = Box::pin(locker.lock("k").acquire());
    assert!(poll_fn(|cx| Poll::Ready(given_up.as_mut().poll(cx))).await.is_pending());
    drop(given_up);
    sync(&locker, &runs).unwrap();
    assert_eq!(runs.count(), 1);
    freed(&server).await;
}

/// Nothing of an attempt to connect that has failed is left to the next call.
#[tokio::test]
async fn a_call_after_a_failed_connect_connects_again() {
    let server = Server::start();
    server.pause();
    let locker = impatient(&server.url()).connect_lazy().unwrap();
    let runs = Runs::default();
    assert_unavailable(&run(&locker, &runs).await.unwrap_err(), &server.url());
    server.resume();
    run(&locker, &runs).await.unwrap();
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn a_closed_port_is_an_error_at_once() {
    let (_server, proxy) = server_and_proxy();
    proxy.refuse();
    let long = patient(&proxy.url()).connect_deadline(LONG).command_deadline(LONG);
    let error = wait::ends(long.clone().connect()).await.unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains(&proxy.url()), "{error}");
    let (locker, runs) = (long.connect_lazy().unwrap(), Runs::default());
    let calls = async { (run(&locker, &runs).await, decorated(&locker, &runs).await) };
    let (ran, called) = wait::ends(calls).await;
    assert_unavailable(&called.unwrap_err(), &proxy.url());
    let error = ran.unwrap_err();
    assert_unavailable(&error, &proxy.url());
    assert!(error.to_string().contains("refused"), "{error}");
    assert!(std::error::Error::source(&error).is_some());
    assert_eq!(runs.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_paused_clock_makes_no_deadline_pass() {
    let (server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    for _ in 0..50 {
        assert_eq!(locker.lock("k").run(async { 7 }).await.unwrap(), 7);
    }
    let runs = Runs::default();
    decorated(&locker, &runs).await.unwrap();
    // An answer that takes its time, while the paused clock runs ahead to every timer there is.
    proxy.hold_replies();
    let release = async {
        proxy.wait_reply_held(LIMIT).await;
        tokio::time::advance(Duration::from_secs(3600)).await;
        proxy.release_replies();
    };
    let (guard, ()) = tokio::join!(locker.lock("k").acquire(), release);
    let guard = guard.unwrap();
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert!(guard.lease().is_held());
    guard.release().await.unwrap();
    assert_eq!(server.admin().get(KEY), None);
}

#[tokio::test(start_paused = true)]
async fn a_paused_clock_stops_no_deadline() {
    let (server, locker) = stalled().await;
    let start = now();
    let runs = Runs::default();
    let error = run(&locker, &runs).await.unwrap_err();
    let passed = start.elapsed();
    assert_unavailable(&error, &server.url());
    assert!(passed >= COMMAND, "{passed:?}");
    assert_eq!(runs.count(), 0);
    server.resume();
    freed(&server).await;
}

/// Goal: the half minute that the documentation names. It counts from the first query without an
/// answer, and a query takes as long as connecting may.
#[tokio::test]
async fn an_unlimited_wait_ends_after_half_a_minutes_outage() {
    const OUTAGE: Duration = Duration::from_secs(30);
    let server = Server::start();
    let holder = connect(&server.url()).await.lock("k").acquire().await.unwrap();
    let locker = impatient(&server.url()).connect().await.unwrap();
    let call = tokio::spawn(locker.lock("k").acquire());
    queued(&server, 1).await;
    let start = now();
    server.kill();
    let error = wait::ends(call).await.unwrap().unwrap_err();
    assert!(start.elapsed() >= OUTAGE, "{:?}", start.elapsed());
    assert!(error.is_unavailable() && error.to_string().contains(&server.url()), "{error}");
    drop(holder);
}

/// A locker with short deadlines whose server stands still.
async fn stalled() -> (Server, Locker) {
    let server = Server::start();
    let locker = impatient(&server.url()).connect().await.unwrap();
    server.pause();
    (server, locker)
}

async fn run(locker: &Locker, runs: &Runs) -> Result<(), LockError> {
    locker.lock("k").run(async { runs.add() }).await
}

fn assert_unavailable(error: &LockError, url: &str) {
    assert!(error.is_unavailable() && error.kind() != LockErrorKind::Refused, "{error:?}");
    assert_eq!(error.key(), Some(KEY));
    let text = error.to_string();
    assert!(text.contains(KEY) && text.contains(url), "{text}");
}
