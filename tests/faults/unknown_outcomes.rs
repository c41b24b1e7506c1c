//! A release or an extension whose outcome is unknown.

use std::time::Duration;

use lockable_runtime::LockError;
use lockable_tests::{Proxy, Server, wait};

use crate::support::{COMMAND, KEY, LIMIT, LONG, elapse, freed};
use crate::waiting::support::impatient_behind_proxy;

#[tokio::test]
async fn an_unanswered_release_continues_in_the_background() {
    let (server, proxy, locker) = impatient_behind_proxy().await;
    let guard = locker.lock("k").renew().try_acquire().await.unwrap();
    let scripts = proxy.commands("EVALSHA");
    proxy.hold_open_replies();
    is_unanswered(wait::ends(guard.release()).await);
    // The server has done it, and the background asks once more.
    freed(&server).await;
    proxy.wait_for_command("EVALSHA", scripts + 2, LIMIT).await;
    proxy.cut();
    proxy.release_replies();
    locker.lock("k").try_run(async {}).await.unwrap();
}

/// The connection hangs, and the background uses another one.
#[tokio::test]
async fn a_swallowed_release_continues_in_the_background() {
    let (server, proxy, locker) = impatient_behind_proxy().await;
    let guard = locker.lock("k").try_acquire().await.unwrap();
    proxy.hold_open_requests();
    is_unanswered(wait::ends(guard.release()).await);
    freed(&server).await;
}

#[tokio::test]
async fn an_extension_whose_reply_is_swallowed_moves_no_deadline() {
    let (server, proxy, locker) = impatient_behind_proxy().await;
    let guard = locker.lock("k").expire(LIMIT).acquire().await.unwrap();
    proxy.hold_open_replies();
    is_unanswered(wait::ends(guard.lease().extend(LONG)).await);
    assert!(guard.lease().is_held() && guard.lease().remaining() < LIMIT);
    // The server has made it longer, but the holder does not rely on that, even after a late reply.
    assert!(server.admin().pttl(KEY) > 50_000);
    proxy.release_replies();
    guard.lease().extend(Duration::from_millis(10)).await.unwrap();
    assert!(guard.lease().remaining() < LIMIT);
    guard.release().await.unwrap();
    assert_eq!(server.admin().get(KEY), None);
}

#[tokio::test]
async fn an_extension_whose_request_is_swallowed_moves_no_deadline() {
    let (server, proxy, locker) = impatient_behind_proxy().await;
    let lease = Duration::from_secs(3);
    let guard = locker.lock("k").expire(lease).acquire().await.unwrap();
    proxy.hold_requests();
    is_unanswered(wait::ends(guard.lease().extend(LONG)).await);
    assert!(guard.lease().remaining() < lease);
    assert!(wait::ends(guard.lease().lost()).await.is_lost());
    proxy.cut();
    proxy.release_requests();
    drop(guard);
    freed(&server).await;
}

/// Goal: the releaser goes by the extended lease, not by the one that was first asked for.
/// Method: the server is away for longer than that one and a command deadline together.
#[tokio::test]
async fn an_extended_lock_is_released_for_its_longest_lease() {
    let (server, proxy, locker) = impatient_behind_proxy().await;
    let lease = Duration::from_secs(2);
    let guard = locker.lock("k").expire(lease).acquire().await.unwrap();
    guard.lease().extend(LONG).await.unwrap();
    proxy.turn_away();
    proxy.cut();
    drop(guard);
    elapse(lease + 2 * COMMAND).await;
    is_released_at_last(&server, &proxy).await;
}

#[tokio::test]
async fn an_unknown_extension_is_released_for_its_longest_lease() {
    let (server, proxy, locker) = impatient_behind_proxy().await;
    let lease = Duration::from_secs(2);
    let guard = locker.lock("k").expire(lease).acquire().await.unwrap();
    proxy.hold_open_replies();
    is_unanswered(guard.lease().extend(LONG).await);
    proxy.turn_away();
    proxy.cut();
    proxy.release_replies();
    assert!(guard.lease().lost().await.is_lost());
    assert!(guard.release().await.is_err());
    elapse(2 * COMMAND).await;
    is_released_at_last(&server, &proxy).await;
}

async fn is_released_at_last(server: &Server, proxy: &Proxy) {
    assert!(server.admin().pttl(KEY) > 40_000);
    proxy.accept();
    freed(server).await;
}

fn is_unanswered(outcome: Result<(), LockError>) {
    let error = outcome.unwrap_err();
    assert!(error.is_unavailable() && !error.is_lost(), "{error}");
}
