//! The query that a wake-up causes: late, given up, or on a connection that has ended. It leaves nothing behind.

use std::time::Duration;

use lockable_runtime::{LockError, LockErrorKind, LockGuard, Locker};
use lockable_tests::{Proxy, Server, wait};
use rstest::rstest;
use tokio::task::JoinHandle;

use super::support::{
    ample, connect, impatient_behind_proxy, in_queue, is_served, is_served_last, places, queued,
    waiter,
};
use crate::support::{COMMAND, KEY, LIMIT, LONG, freed, server_and_proxy};

/// Method: the lock is reserved for the call no more when its query arrives.
#[tokio::test]
async fn a_late_query_is_granted_a_whole_lease() {
    let (server, proxy) = server_and_proxy();
    let call = held_query(&server, &proxy, &connect(&proxy.url()).await, LONG).await;
    freed(&server).await;
    proxy.release_requests();
    let guard = wait::ends(call).await.unwrap().unwrap();
    // What is left of the lease is read first, so that the lock's rest may only be smaller.
    let counted = guard.lease().remaining();
    let left = Duration::from_millis(server.admin().pttl(KEY).try_into().unwrap());
    assert!(LONG / 2 < counted && counted <= left, "{counted:?} of a lock that lasts for {left:?}");
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_given_up_query_hands_off_the_lock() {
    let (server, proxy) = server_and_proxy();
    let call = held_query(&server, &proxy, &connect(&proxy.url()).await, LONG).await;
    let (next, admin) = (waiter(&connect(&server.url()).await), server.admin());
    wait::until_async(LIMIT, async || places(&admin) == 1 || next.is_finished()).await;
    give_up(call).await;
    proxy.release_requests();
    is_served_last(&server, next).await;
}

/// The limit is over while the query is on its way, or after its own deadline. As far as is known then, another
/// holder has the lock; or nothing is.
#[rstest]
#[case::on_its_way(LONG, LockErrorKind::WaitLimitReached)]
#[case::after_its_deadline(COMMAND, LockErrorKind::Unavailable)]
#[tokio::test]
async fn a_query_answered_after_the_limit_leaves_no_lock(
    #[case] deadline: Duration,
    #[case] kind: LockErrorKind,
) {
    let (server, proxy) = server_and_proxy();
    let locker = ample(&proxy.url()).command_deadline(deadline).connect().await.unwrap();
    let call = held_query(&server, &proxy, &locker, 4 * COMMAND).await;
    proxy.hold_replies();
    proxy.release_requests();
    proxy.wait_reply_held(LIMIT).await;
    assert!(server.admin().pttl(KEY) > 10_000);
    let error = wait::ends(call).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    proxy.release_replies();
    freed(&server).await;
}

/// Goal: no number of releases that are answered before the query lands makes up for one after it.
/// Method: the query is held back until its connection is given up, and a release on another one
/// has found the lock free.
#[tokio::test]
async fn a_query_behind_an_empty_release_leaves_no_lock() {
    let (server, proxy, locker) = impatient_behind_proxy().await;
    let call = held_query(&server, &proxy, &locker, LONG).await;
    give_up(call).await;
    freed(&server).await;
    let (admin, released) = (server.admin(), server.admin().command_calls("evalsha"));
    wait::until_async(LIMIT, async || admin.command_calls("evalsha") > released).await;
    land(&server, &proxy).await;
    freed(&server).await;
}

/// Its outcome stays unknown: the connection breaks, and no other one can be opened.
#[tokio::test]
async fn a_query_outliving_its_connection_leaves_no_lock() {
    let (server, proxy) = server_and_proxy();
    let call = held_query(&server, &proxy, &connect(&proxy.url()).await, LONG).await;
    proxy.refuse();
    proxy.hang_up();
    give_up(call).await;
    freed(&server).await;
    proxy.accept();
    land(&server, &proxy).await;
    freed(&server).await;
}

/// The line asks again over another connection, and its turn is over when the first query lands.
#[tokio::test]
async fn a_query_behind_a_later_one_leaves_no_lock() {
    let (server, proxy, locker) = impatient_behind_proxy().await;
    let call = held_query(&server, &proxy, &locker, LONG).await;
    // Released on a new connection of the background.
    drop(wait::ends(call).await.unwrap().unwrap());
    freed(&server).await;
    land(&server, &proxy).await;
    freed(&server).await;
}

/// A call that asks because it was woken: the request is held back on its way.
pub(crate) async fn held_query(
    server: &Server,
    proxy: &Proxy,
    locker: &Locker,
    limit: Duration,
) -> JoinHandle<Result<LockGuard, LockError>> {
    let holder = connect(&server.url()).await;
    let guard = holder.lock("k").acquire().await.unwrap();
    // A waiter that subscribes asks once more, and would hear of its turn by that.
    let first = in_queue(server, locker).await;
    guard.release().await.unwrap();
    is_served(first).await;
    let guard = holder.lock("k").acquire().await.unwrap();
    let call = tokio::spawn(locker.lock("k").wait(limit).acquire());
    queued(server, 1).await;
    proxy.hold_messages();
    guard.release().await.unwrap();
    proxy.hold_open_requests();
    proxy.release_messages();
    proxy.wait_held(LIMIT).await;
    call
}

pub(crate) async fn give_up(call: JoinHandle<Result<LockGuard, LockError>>) {
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
}

/// Lets the query go, and waits until the server has granted it.
async fn land(server: &Server, proxy: &Proxy) {
    let (admin, granted) = (server.admin(), server.admin().command_calls("set"));
    proxy.release_requests();
    wait::until_async(LIMIT, async || admin.command_calls("set") > granted).await;
}
