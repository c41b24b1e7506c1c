//! After its release a lock is renewed no more, and a renewal makes nothing that is not there.

use std::time::Duration;

use lockable_tests::{Server, wait};

use crate::support::{KEY, LIMIT, connect, elapse, freed, server_and_proxy};

const LEASE: Duration = Duration::from_millis(2_400);

#[tokio::test]
async fn released_locks_are_not_renewed() {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    let renewed = || locker.lock("k").expire(LEASE).renew();
    for _ in 0..3 {
        let guard = renewed().try_acquire().await.unwrap().unwrap();
        is_renewed(&server).await;
        guard.release().await.unwrap();
        renewed().try_run(is_renewed(&server)).await.unwrap().unwrap();
    }
    assert_quiet(&server).await;
}

#[tokio::test]
async fn dropped_locks_are_not_renewed() {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    for _ in 0..3 {
        let guard = locker.lock("k").expire(LEASE).renew().try_acquire().await.unwrap().unwrap();
        is_renewed(&server).await;
        drop(guard);
        freed(&server).await;
        let call = locker.lock("k").expire(LEASE).renew().run(std::future::pending::<()>());
        let call = tokio::spawn(call);
        is_renewed(&server).await;
        call.abort();
        freed(&server).await;
    }
    assert_quiet(&server).await;
}

/// Goal: a renewal that lands after the release makes no key.
/// Method: renewals and the release go over different connections, and the older ones hang.
#[tokio::test]
async fn a_renewal_behind_its_release_makes_nothing() {
    let (server, guard, proxy) = held_with_a_renewal_under_way().await;
    guard.release().await.unwrap();
    assert_eq!(server.admin().get(KEY), None);
    let renewals = server.admin().command_calls("evalsha");
    proxy.release_requests();
    wait::until_async(LIMIT, async || server.admin().command_calls("evalsha") > renewals).await;
    assert_eq!((server.admin().get(KEY), server.admin().pttl(KEY)), (None, -2));
}

#[tokio::test]
async fn a_renewal_behind_the_next_holder_changes_nothing() {
    let (server, guard, proxy) = held_with_a_renewal_under_way().await;
    guard.release().await.unwrap();
    let admin = server.admin();
    admin.set(KEY, "next");
    let renewals = admin.command_calls("evalsha");
    proxy.release_requests();
    wait::until_async(LIMIT, async || admin.command_calls("evalsha") > renewals).await;
    assert_eq!((admin.get(KEY).as_deref(), admin.pttl(KEY)), (Some("next"), -1));
}

#[tokio::test]
async fn a_renewal_of_a_deleted_lock_makes_nothing() {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    let admin = server.admin();
    for _ in 0..3 {
        let guard = locker.lock("k").expire(LEASE).renew().try_acquire().await.unwrap().unwrap();
        admin.del(KEY);
        assert!(guard.lost().await.is_lost());
        assert_eq!(admin.get(KEY), None);
        assert!(guard.release().await.unwrap_err().is_lost());
    }
    assert_quiet(&server).await;
}

/// A lock whose guard lives on the test's runtime, and whose renewal hangs in the background's
/// connection; the next connections do not.
async fn held_with_a_renewal_under_way()
-> (Server, lockable_runtime::LockGuard, lockable_tests::Proxy) {
    let (server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    let lease = Duration::from_secs(10);
    let guard = locker.lock("k").expire(lease).renew().acquire().await.unwrap();
    // A release over a connection of the test's own has to pass, so the background's is opened
    // first, and then a new one of the test.
    drop(locker.lock("other").acquire().await.unwrap());
    wait::until_async(LIMIT, async || server.admin().get("disLock:other").is_none()).await;
    proxy.hold_open_requests();
    proxy.wait_held(LIMIT).await;
    proxy.hang_up();
    (server, guard, proxy)
}

/// Waits until the server has renewed once more.
async fn is_renewed(server: &Server) {
    let admin = server.admin();
    let before = admin.command_calls("pexpire");
    wait::until_async(LIMIT, async || admin.command_calls("pexpire") > before).await;
}

/// Nothing is renewed, or even asked, for longer than several leases would go without.
async fn assert_quiet(server: &Server) {
    let admin = server.admin();
    let counts = || ["evalsha", "eval", "pexpire"].map(|name| admin.command_calls(name));
    let before = counts();
    elapse(3 * LEASE).await;
    assert_eq!(counts(), before);
    assert_eq!(admin.get(KEY), None);
}
