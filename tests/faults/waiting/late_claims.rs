//! A grant that was heard of late is claimed; a claim that is given up leaves nothing behind.

use std::time::Duration;

use lockable_runtime::{LockError, LockGuard, Locker};
use lockable_tests::{Proxy, Server, wait};
use rstest::rstest;
use tokio::task::JoinHandle;

use super::support::{
    ample, connect, impatient_behind_proxy, in_queue, is_served_last, queued, released,
};
use crate::support::{COMMAND, KEY, LIMIT, LONG, elapse, freed, server_and_proxy};

#[tokio::test]
async fn a_late_grant_is_claimed_before_the_holder_begins() {
    let (server, proxy) = server_and_proxy();
    let call = held_claim(&server, &proxy, &connect(&proxy.url()).await, LONG).await;
    proxy.release_requests();
    let guard = call.await.unwrap().unwrap();
    assert!(guard.lease().remaining() > LONG / 2, "{guard:?}");
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_given_up_claim_hands_off_the_lock() {
    let (server, proxy) = server_and_proxy();
    let call = held_claim(&server, &proxy, &connect(&proxy.url()).await, LONG).await;
    let next = in_queue(&server, &connect(&server.url()).await).await;
    give_up(call).await;
    proxy.release_requests();
    is_served_last(&server, next).await;
}

/// The limit is over while the claim is on its way, or after its own deadline: either way nothing has said
/// that another holder has the lock.
#[rstest]
#[case::on_its_way(LONG)]
#[case::after_its_deadline(COMMAND)]
#[tokio::test]
async fn a_claim_answered_after_the_limit_leaves_no_lock(#[case] deadline: Duration) {
    let (server, proxy) = server_and_proxy();
    let locker = ample(&proxy.url()).command_deadline(deadline).connect().await.unwrap();
    let call = held_claim(&server, &proxy, &locker, 4 * COMMAND).await;
    proxy.hold_replies();
    proxy.release_requests();
    proxy.wait_reply_held(LIMIT).await;
    assert!(server.admin().pttl(KEY) > 10_000);
    let error = call.await.unwrap().unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains("wait limit"), "{error}");
    proxy.release_replies();
    freed(&server).await;
}

/// Goal: no number of releases that are answered before the claim lands makes up for one after it.
/// Method: the claim is held back until its connection is given up, and a release on another one
/// has found the lock free.
#[tokio::test]
async fn a_claim_behind_an_empty_release_leaves_no_lock() {
    let (server, proxy, locker) = impatient_behind_proxy().await;
    let call = held_claim(&server, &proxy, &locker, LONG).await;
    give_up(call).await;
    freed(&server).await;
    let (admin, released) = (server.admin(), server.admin().command_calls("evalsha"));
    wait::until_async(LIMIT, async || admin.command_calls("evalsha") > released).await;
    land(&server, &proxy).await;
    freed(&server).await;
}

/// Its outcome stays unknown: the connection breaks, and no other one can be opened.
#[tokio::test]
async fn a_claim_outliving_its_connection_leaves_no_lock() {
    let (server, proxy) = server_and_proxy();
    let call = held_claim(&server, &proxy, &connect(&proxy.url()).await, LONG).await;
    proxy.refuse();
    proxy.hang_up();
    give_up(call).await;
    freed(&server).await;
    proxy.accept();
    land(&server, &proxy).await;
    freed(&server).await;
}

#[tokio::test]
async fn a_claim_behind_another_grant_leaves_no_lock() {
    let (server, proxy, locker) = impatient_behind_proxy().await;
    let call = held_claim(&server, &proxy, &locker, LONG).await;
    // Released on a new connection of the background.
    drop(call.await.unwrap().unwrap());
    freed(&server).await;
    land(&server, &proxy).await;
    freed(&server).await;
}

/// A call that claims a grant of which it has heard late: the request is held back on its way.
pub(crate) async fn held_claim(
    server: &Server,
    proxy: &Proxy,
    locker: &Locker,
    limit: Duration,
) -> JoinHandle<Result<LockGuard, LockError>> {
    let holder = connect(&server.url()).await;
    let guard = holder.lock("k").acquire().await.unwrap();
    // A waiter that subscribes asks once more, and would hear of its grant by that.
    let first = in_queue(server, locker).await;
    guard.release().await.unwrap();
    released(&first.await.unwrap().release().await);
    let guard = holder.lock("k").acquire().await.unwrap();
    let call = tokio::spawn(locker.lock("k").wait(limit).acquire());
    queued(server, 1).await;
    proxy.hold_messages();
    guard.release().await.unwrap();
    proxy.hold_open_requests();
    // More than a third of the grant, and less than the whole.
    elapse(Duration::from_millis(400)).await;
    proxy.release_messages();
    proxy.wait_held(LIMIT).await;
    call
}

pub(crate) async fn give_up(call: JoinHandle<Result<LockGuard, LockError>>) {
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
}

/// Lets the claim go, and waits until the server has granted it.
async fn land(server: &Server, proxy: &Proxy) {
    let (admin, granted) = (server.admin(), server.admin().command_calls("set"));
    proxy.release_requests();
    wait::until_async(LIMIT, async || admin.command_calls("set") > granted).await;
}
