//! Servers and connections that go away and come back; the locker stays the same.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use lockable_runtime::Locker;
use lockable_tests::{Proxy, Server, wait};
use rstest::rstest;

use crate::runtimes::{block_on, one_thread, pair};
use crate::support::{
    KEY, LIMIT, elapse, freed, freed_blocking, impatient, is_unsure, server_and_proxy,
};
use crate::waiting::support::{ample, behind_proxy, impatient_behind_proxy, server_and_locker};

#[tokio::test]
async fn the_next_call_uses_a_restarted_server() {
    let (server, locker) = server_and_locker().await;
    pair(&locker).await;
    server.kill();
    assert!(locker.lock("k").acquire().await.unwrap_err().is_unavailable());
    server.restart();
    pair(&locker).await;
}

/// No call is lost to a restart that was not noticed before.
#[test]
fn every_runtime_uses_a_restarted_server() {
    let server = Server::start();
    let locker = ample(&server.url()).connect_lazy().unwrap();
    let runtimes: Vec<_> = (0..3).map(|_| one_thread()).collect();
    let pair_everywhere = || {
        thread::scope(|scope| {
            for (number, runtime) in runtimes.iter().enumerate() {
                let request = locker.lock(format!("n:{number}"));
                scope.spawn(|| runtime.block_on(request.try_run(async {})).unwrap());
            }
        });
        one_thread().block_on(pair(&locker));
    };
    pair_everywhere();
    server.restart();
    pair_everywhere();
}

/// Goal: a call that joins a connection which another one has begun does not fail with it, when that
/// was begun too early.
/// Method: the handshake of the first call is held back, the second one waits for it as well, and then
/// the connection breaks.
#[tokio::test]
async fn a_failed_early_connection_fails_no_later_call() {
    let (_server, proxy) = server_and_proxy();
    let locker = ample(&proxy.url()).connect_lazy().unwrap();
    proxy.hold_requests();
    let early = tokio::spawn(locker.lock("early").acquire());
    proxy.wait_held(LIMIT).await;
    let mut later = pin!(locker.lock("k").acquire());
    let first_poll = poll_fn(|cx| Poll::Ready(later.as_mut().poll(cx))).await;
    assert!(first_poll.is_pending());
    proxy.hang_up();
    proxy.release_requests();
    later.await.unwrap().release().await.unwrap();
    assert!(early.await.unwrap().unwrap_err().is_unavailable());
}

/// Goal: a call that joins a connection without an answer opens no other when its time is over.
#[tokio::test]
async fn a_silent_connection_is_not_retried_by_its_waiters() {
    let (_server, proxy) = server_and_proxy();
    let locker = impatient(&proxy.url()).connect_lazy().unwrap();
    proxy.hold_requests();
    // Two looks, which leave nothing to the background that would connect, too.
    let (one, two) = tokio::join!(locker.inspect("one"), locker.inspect("two"));
    assert!(one.unwrap_err().is_unavailable() && two.unwrap_err().is_unavailable());
    assert_eq!(proxy.accepted(), 1);
}

/// Goal: "released" for a lock that the server had lost, and that another holder may have by now.
/// Method: the release is the first to meet the new server, so its first request breaks.
#[rstest]
#[tokio::test]
async fn a_release_after_a_restart_is_unsure(
    #[values(None, Some("another holder"))] other: Option<&str>,
) {
    let (server, locker) = server_and_locker().await;
    let guard = locker.lock("k").acquire().await.unwrap();
    server.restart();
    if let Some(other) = other {
        server.admin().set(KEY, other);
    }
    is_unsure(&guard.release().await.unwrap_err());
    assert_eq!(server.admin().get(KEY).as_deref(), other);
}

/// Goal: a release that finds another holder is lost, and takes nothing from it.
/// Method: a look opens the new connection first; a release that did so itself would be unsure.
#[tokio::test]
async fn a_guard_outliving_its_server_spares_the_next_holder() {
    let (server, locker) = server_and_locker().await;
    let guard = locker.lock("k").acquire().await.unwrap();
    server.restart();
    let next = locker.lock("k").acquire().await.unwrap();
    assert!(locker.inspect("k").await.unwrap().is_some());
    assert!(guard.release().await.unwrap_err().is_lost());
    assert!(server.admin().get(KEY).is_some());
    next.release().await.unwrap();
}

#[rstest]
#[case::cut(|_: &Server, proxy: &Proxy| proxy.cut())]
#[case::closed_by_the_server(|server: &Server, _: &Proxy| {
    server.admin().command::<()>(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
})]
#[tokio::test]
async fn an_idle_connection_that_ends_loses_no_call(#[case] end: fn(&Server, &Proxy)) {
    let (server, proxy, locker) = behind_proxy().await;
    for _ in 0..10 {
        end(&server, &proxy);
        let guard = locker.lock("k").acquire().await.unwrap();
        end(&server, &proxy);
        guard.release().await.unwrap();
        assert_eq!(server.admin().get(KEY), None);
    }
    assert!(proxy.accepted() > 20);
}

/// Goal: the calls that one connection leaves unanswered are not held against the next one.
/// Method: some of them are given up when the next one is open already.
#[tokio::test]
async fn a_silent_connection_is_replaced_once() {
    const DEADLINE: Duration = Duration::from_secs(2);
    let (_server, proxy) = server_and_proxy();
    let locker = ample(&proxy.url()).command_deadline(DEADLINE).connect().await.unwrap();
    let ask_thrice = || {
        let ask = |locker: Locker| tokio::spawn(async move { locker.inspect("k").await.is_ok() });
        [ask(locker.clone()), ask(locker.clone()), ask(locker.clone())]
    };
    proxy.hold_open_requests();
    let early = ask_thrice();
    elapse(DEADLINE / 8).await;
    let late = ask_thrice();
    for calls in [early, late] {
        for call in calls {
            call.await.unwrap();
        }
        locker.inspect("k").await.unwrap();
    }
    assert_eq!(proxy.accepted(), 2);
    // The first one was open until the last answer, or is closed by the next call.
    proxy.release_requests();
    wait::until_async(LIMIT, async || proxy.open() == 1).await;
}

#[tokio::test]
async fn a_call_that_lost_its_reply_is_granted_once() {
    let (server, proxy, locker) = behind_proxy().await;
    pair(&locker).await;
    proxy.hold_open_replies();
    let (guard, ()) = tokio::join!(locker.lock("k").acquire(), cut_behind_its_request(&proxy));
    assert!(server.admin().get(KEY).is_some());
    guard.unwrap().release().await.unwrap();
    assert_eq!(server.admin().get(KEY), None);
}

#[tokio::test]
async fn a_release_that_lost_its_reply_is_unsure() {
    let (server, proxy, locker) = behind_proxy().await;
    let guard = locker.lock("k").acquire().await.unwrap();
    proxy.hold_open_replies();
    let (outcome, ()) = tokio::join!(guard.release(), cut_behind_its_request(&proxy));
    is_unsure(&outcome.unwrap_err());
    assert_eq!(server.admin().get(KEY), None);
}

pub(crate) async fn cut_behind_its_request(proxy: &Proxy) {
    proxy.wait_reply_held(LIMIT).await;
    proxy.cut();
}

#[tokio::test]
async fn a_release_is_retried_until_the_server_is_back() {
    let (server, proxy, locker) = behind_proxy().await;
    let guard = locker.lock("k").acquire().await.unwrap();
    proxy.refuse();
    proxy.cut();
    assert!(guard.release().await.unwrap_err().is_unavailable());
    assert!(server.admin().get(KEY).is_some());
    proxy.accept();
    freed(&server).await;
}

/// The connection that hangs is the one that the background uses.
#[test]
fn a_hanging_release_is_retried_outside_a_runtime() {
    let (server, proxy) = server_and_proxy();
    let locker = impatient(&proxy.url()).connect_lazy().unwrap();
    let guard = block_on(locker.lock("k").acquire()).unwrap();
    proxy.hold_open_requests();
    assert!(block_on(guard.release()).unwrap_err().is_unavailable());
    freed_blocking(&server);
}

/// The connection of the background carries calls without a runtime. That one also
/// releases, and what it does not get answered counts too.
#[test]
fn three_unanswered_calls_outside_a_runtime_reconnect() {
    let (_server, proxy) = server_and_proxy();
    let locker = impatient(&proxy.url()).connect_lazy().unwrap();
    block_on(pair(&locker));
    proxy.hold_open_replies();
    let call = |n| block_on(locker.lock(format!("n:{n}")).acquire());
    let unanswered = (0..10).map(call).take_while(Result::is_err).count();
    assert!((1..=3).contains(&unanswered), "{unanswered}");
}

/// An answer in between shows that the connection lives.
#[tokio::test]
async fn unanswered_calls_count_only_in_a_row() {
    let (_server, proxy, locker) = impatient_behind_proxy().await;
    for _ in 0..3 {
        proxy.hold_replies();
        // A look leaves nothing to the background, which would connect, too.
        assert!(locker.inspect("k").await.unwrap_err().is_unavailable());
        proxy.release_replies();
        wait::until_async(LIMIT, async || locker.inspect("k").await.is_ok()).await;
    }
    assert_eq!(proxy.accepted(), 1);
}
