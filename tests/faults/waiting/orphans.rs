//! A call that has ended takes no lock, and has no place in a queue.

use std::time::Duration;

use lockable_runtime::{LockGuard, LockRequest, Locker};
use lockable_tests::{Proxy, Server, wait};
use tokio::runtime::Runtime;

use super::support::{QUEUE, queued};
use crate::runtimes::one_thread;
use crate::support::{KEY, LIMIT, LONG, elapse, freed_blocking, patient, server_and_proxy};

/// Goal: a question that was repeated, and lands behind the release of its turn, takes the lock for no
/// call.
/// Method:
/// 1. A waiter repeats its question over the connection of the background, where it is held back.
/// 2. The grant comes by message, and the turn is released over the connection of another runtime. The
///    server does that, and its answer is held back.
/// 3. The question lands, and takes the free lock.
/// 4. Its answer is processed before that of the release.
#[test]
fn a_question_behind_its_release_takes_no_lock() {
    let (server, proxy) = server_and_proxy();
    let (first, second) = (one_thread(), one_thread());
    let holder = holder(&first, &server);
    let locker = waiting_through(&first, &proxy);
    let guard = granted_with_an_open_question(&first, &server, &proxy, locker.lock("k"), holder);
    second.block_on(async { locker.lock("another").run(async {}).await.unwrap() });
    proxy.hold_replies();
    let mut release = Box::pin(guard.release());
    second.block_on(async {
        let answer = tokio::time::timeout(Duration::from_millis(300), &mut release).await;
        assert!(answer.is_err(), "the answer is held back");
    });
    assert_eq!(server.admin().get(KEY), None, "the server has released the lock");
    proxy.release_requests();
    wait::until(LIMIT, || server.admin().get(KEY).is_some());
    // The background processes its answer, while the second runtime is busy.
    proxy.release_replies();
    first.block_on(elapse(Duration::from_millis(500)));
    second.block_on(release).unwrap();
    freed_blocking(&server);
}

/// Goal: the same for a question whose answer was given up before the release began.
/// Method: the command deadline ends while the question is held back.
#[test]
fn a_dropped_question_behind_its_release_takes_nothing() {
    let (server, proxy) = server_and_proxy();
    let (first, second) = (one_thread(), one_thread());
    let holder = holder(&first, &server);
    let deadline = Duration::from_millis(300);
    let locker = patient(&proxy.url()).command_deadline(deadline);
    let locker = first.block_on(locker.connect()).unwrap();
    let guard = granted_with_an_open_question(&first, &server, &proxy, locker.lock("k"), holder);
    first.block_on(elapse(2 * deadline));
    second.block_on(async { locker.lock("another").run(async {}).await.unwrap() });
    second.block_on(guard.release()).unwrap();
    assert_eq!(server.admin().get(KEY), None);
    proxy.release_requests();
    // What comes behind it on the same connection has been answered.
    second.block_on(elapse(Duration::from_millis(200)));
    freed_blocking(&server);
    assert_eq!(server.admin().command::<usize>(&["EXISTS", QUEUE]), 0);
}

/// Goal: the minimum hold lasts, also where a question is open and the release is given up: nothing that
/// knows of no minimum overtakes the release.
/// Method: the release is dropped on its way, or has no answer within its deadline.
#[test]
fn a_minimum_hold_outlasts_an_unfinished_release() {
    for deadline in [Duration::from_secs(20), Duration::from_secs(1)] {
        let (server, proxy) = server_and_proxy();
        let (first, second) = (one_thread(), one_thread());
        let holder = holder(&first, &server);
        let locker = patient(&proxy.url()).command_deadline(deadline);
        let locker = first.block_on(locker.connect()).unwrap();
        let request = locker.lock("k").min_hold(LONG / 2);
        let guard = granted_with_an_open_question(&first, &server, &proxy, request, holder);
        second.block_on(async { locker.lock("another").run(async {}).await.unwrap() });
        proxy.hold_requests();
        let release = guard.release();
        let limit = Duration::from_millis(1_200);
        let given_up = second.block_on(async { tokio::time::timeout(limit, release).await });
        assert!(given_up.is_err() || given_up.is_ok_and(|answer| answer.is_err()));
        proxy.release_requests();
        first.block_on(elapse(Duration::from_millis(1_500)));
        assert!(server.admin().pttl(KEY) > 10_000, "the lock is taken for half a minute");
    }
}

fn holder(runtime: &Runtime, server: &Server) -> LockGuard {
    runtime.block_on(async {
        let locker = patient(&server.url()).connect().await.unwrap();
        locker.lock("k").acquire().await.unwrap()
    })
}

fn waiting_through(runtime: &Runtime, proxy: &Proxy) -> Locker {
    let locker = patient(&proxy.url()).command_deadline(Duration::from_secs(20));
    runtime.block_on(locker.connect()).unwrap()
}

/// A lock that was granted by message, while the question that its line repeated is held back.
fn granted_with_an_open_question(
    runtime: &Runtime,
    server: &Server,
    proxy: &Proxy,
    request: LockRequest,
    holder: LockGuard,
) -> LockGuard {
    runtime.block_on(async {
        let waiting = tokio::spawn(request.wait_at_most(LIMIT).acquire());
        queued(server, 1).await;
        proxy.hold_open_requests();
        proxy.wait_held(LIMIT).await;
        holder.release().await.unwrap();
        waiting.await.unwrap().unwrap()
    })
}
