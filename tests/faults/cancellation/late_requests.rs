//! Requests that reach the server, or whose replies come back, after their caller is gone.

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use lockable_runtime::{LockError, LockGuard, Locker};
use lockable_tests::{Proxy, Server, wait};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::runtimes::{block_on, one_thread};
use crate::support::{
    KEY, LIMIT, MARGIN, connect, freed, freed_blocking, impatient, in_time, now, patient,
    server_and_proxy,
};

/// Goal: the release of a dropped call does not overtake the call's own request.
/// Method: the request is held on its connection while later connections pass freely; a call
/// through the background's connection shows that every deferred release has been tried.
#[tokio::test]
async fn a_dropped_calls_late_request_leaves_no_lock() {
    twenty_times(async |server, proxy| {
        let locker = connect(&proxy.url()).await;
        proxy.hold_open_requests();
        let call = acquire(&locker);
        proxy.wait_held(LIMIT).await;
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        overtake(&locker).await;
        proxy.release_requests();
        landed(&locker).await;
        freed(&server).await;
    })
    .await;
}

/// As above, where the caller's time runs out.
#[tokio::test]
async fn a_timed_out_calls_late_request_leaves_no_lock() {
    twenty_times(async |server, proxy| {
        let locker = impatient(&proxy.url()).connect_lazy().unwrap();
        landed(&locker).await;
        proxy.hold_open_requests();
        let call = acquire(&locker);
        proxy.wait_held(LIMIT).await;
        assert!(call.await.unwrap().unwrap_err().is_unavailable());
        overtake(&locker).await;
        proxy.release_requests();
        landed(&locker).await;
        freed(&server).await;
    })
    .await;
}

#[tokio::test]
async fn a_dropped_calls_broken_connection_leaves_no_lock() {
    twenty_times(async |server, proxy| {
        let locker = connect(&proxy.url()).await;
        proxy.hold_open_replies();
        let call = acquire(&locker);
        proxy.wait_reply_held(LIMIT).await;
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        assert!(server.admin().get(KEY).is_some());
        proxy.cut();
        freed(&server).await;
    })
    .await;
}

#[tokio::test]
async fn a_timed_out_calls_broken_connection_leaves_no_lock() {
    let (server, proxy) = server_and_proxy();
    let locker = impatient(&proxy.url()).connect().await.unwrap();
    proxy.hold_open_replies();
    assert!(locker.lock("k").acquire().await.unwrap_err().is_unavailable());
    assert!(server.admin().get(KEY).is_some());
    proxy.hang_up();
    freed(&server).await;
}

/// Goal: a connection that hangs keeps no lock. Method: the server has run the request and its reply
/// never comes, while later connections work.
#[tokio::test]
async fn a_call_whose_reply_never_comes_leaves_no_lock() {
    let (server, proxy) = server_and_proxy();
    let locker = impatient(&proxy.url()).connect().await.unwrap();
    proxy.hold_open_replies();
    assert!(locker.lock("k").acquire().await.unwrap_err().is_unavailable());
    assert!(server.admin().get(KEY).is_some());
    freed(&server).await;
}

/// Goal: a runtime that is no longer driven keeps no lock. Method: it is not polled after the end of
/// the call, so the reply comes and is not read.
#[test]
fn a_runtime_no_longer_driven_keeps_no_lock() {
    let (server, proxy) = server_and_proxy();
    let locker = impatient(&proxy.url()).connect_lazy().unwrap();
    let runtime = one_thread();
    runtime.block_on(landed(&locker));
    proxy.hold_open_replies();
    let call = locker.lock("k").acquire();
    assert!(runtime.block_on(call).unwrap_err().is_unavailable());
    assert!(server.admin().get(KEY).is_some());
    proxy.release_replies();
    freed_blocking(&server);
}

/// Goal: a request that outlives its connection is released although its reply never arrives.
/// Method: the client's side is closed while the request is held, and no connection succeeds; so the
/// call ends without an answer. Then the server can be reached, and the request lands.
#[tokio::test]
async fn a_request_that_outlives_its_connection_is_released() {
    let (server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    lose_the_connection(&locker, &proxy).await;
    proxy.accept();
    landed(&locker).await;
    assert_eq!(server.admin().get(KEY), None);
    land(&server, &proxy, 1).await;
    freed(&server).await;
}

/// As above, with a request that lands after its lease: the releases are repeated until one command
/// deadline after that. Time itself is the subject.
#[tokio::test]
async fn a_request_after_its_lease_is_released() {
    let (server, proxy) = server_and_proxy();
    let expire = Duration::from_secs(2);
    let patient = patient(&proxy.url()).expire(expire).command_deadline(LIMIT);
    let locker = patient.connect().await.unwrap();
    let start = now();
    lose_the_connection(&locker, &proxy).await;
    proxy.accept();
    wait::until_async(LIMIT, async || start.elapsed() > expire * 3 / 2).await;
    land(&server, &proxy, 1).await;
    in_time(expire.saturating_sub(MARGIN * 6 / 5), freed(&server)).await;
}

/// The one case in which a lock can remain: the call was repeated on another connection, acquired
/// and released, and then the first request lands. It lasts for `expire` from there.
#[tokio::test]
async fn a_request_behind_its_retry_lasts_expire_at_most() {
    let (server, proxy) = server_and_proxy();
    let expire = Duration::from_secs(1);
    let locker = patient(&proxy.url()).expire(expire).connect().await.unwrap();
    proxy.hold_open_requests();
    let call = acquire(&locker);
    proxy.wait_held(LIMIT).await;
    proxy.hang_up();
    call.await.unwrap().unwrap().release().await.unwrap();
    remains_for_expire_at_most(&server, &proxy, expire).await;
}

/// As above, for a call that was dropped.
#[tokio::test]
async fn a_dropped_request_behind_its_retry_lasts_one_lease() {
    let (server, proxy) = server_and_proxy();
    let expire = Duration::from_secs(1);
    let locker = patient(&proxy.url()).expire(expire).connect().await.unwrap();
    proxy.hold_open_requests();
    let call = acquire(&locker);
    proxy.wait_held(LIMIT).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    proxy.hang_up();
    overtake(&locker).await;
    remains_for_expire_at_most(&server, &proxy, expire).await;
}

async fn remains_for_expire_at_most(server: &Server, proxy: &Proxy, expire: Duration) {
    land(server, proxy, 1).await;
    assert!(u128::try_from(server.admin().pttl(KEY)).unwrap_or(0) <= expire.as_millis());
    in_time(expire, freed(server)).await;
}

/// A call that ends without an answer, while its request is held on a connection that is gone.
async fn lose_the_connection(locker: &Locker, proxy: &Proxy) {
    proxy.hold_open_requests();
    let call = acquire(locker);
    proxy.wait_held(LIMIT).await;
    proxy.refuse();
    proxy.hang_up();
    assert!(call.await.unwrap().unwrap_err().is_unavailable());
}

/// Lets the held acquisitions go and waits until the server has run them. Each is the first of its
/// connection, which reads the time for its fence counter.
async fn land(server: &Server, proxy: &Proxy, acquisitions: u64) {
    let admin = server.admin();
    let before = admin.command_calls("time");
    proxy.release_requests();
    let has_landed = async || admin.command_calls("time") >= before + acquisitions;
    wait::until_async(LIMIT, has_landed).await;
}

/// A call on this runtime's connection, behind everything that was sent there before.
async fn landed(locker: &Locker) {
    let is_through = async || locker.lock("behind").run(async {}).await.is_ok();
    wait::until_async(LIMIT, is_through).await;
}

/// A call on the background's connection, behind everything that was deferred before.
///
/// On a plain thread, because a blocking task would still be inside this runtime.
async fn overtake(locker: &Locker) {
    let locker = locker.clone();
    let (done, is_done) = oneshot::channel();
    thread::spawn(move || {
        wait::until(LIMIT, || block_on(locker.lock("overtaking").run(async {})).is_ok());
        done.send(()).unwrap();
    });
    is_done.await.unwrap();
}

fn acquire(locker: &Locker) -> JoinHandle<Result<LockGuard, LockError>> {
    tokio::spawn(locker.lock("k").acquire())
}

/// Side by side, each with a server and a proxy of its own.
async fn twenty_times(attempt: impl AsyncFn(Server, Proxy)) {
    let mut attempts: Vec<_> = (0..20)
        .map(|_| {
            let (server, proxy) = server_and_proxy();
            Box::pin(attempt(server, proxy))
        })
        .collect();
    poll_fn(|cx| {
        attempts.retain_mut(|attempt| attempt.as_mut().poll(cx).is_pending());
        if attempts.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
