//! After its release a lock is renewed no more, and a renewal makes nothing that is not there.

use std::future::pending;
use std::time::Duration;

use lockable_runtime::LockGuard;
use lockable_tests::{Proxy, Server, wait};
use rstest::rstest;

use crate::support::{
    KEY, LIMIT, connect_ample, elapse, freed, server_and_locker, server_and_proxy,
};

/// It is renewed after a third of it.
const LEASE: Duration = Duration::from_secs(6);

#[tokio::test]
async fn released_and_dropped_locks_are_not_renewed() {
    let (server, locker) = server_and_locker().await;
    let renewed = || locker.lock("k").expire(LEASE).renew();
    let guard = renewed().try_acquire().await.unwrap();
    is_renewed(&server).await;
    guard.release().await.unwrap();
    renewed().try_run(is_renewed(&server)).await.unwrap();
    let guard = renewed().try_acquire().await.unwrap();
    is_renewed(&server).await;
    drop(guard);
    freed(&server).await;
    let call = tokio::spawn(renewed().run(pending::<()>()));
    is_renewed(&server).await;
    call.abort();
    freed(&server).await;
    assert_quiet(&server).await;
}

/// Goal: a renewal that arrives after the release makes no key, and changes no lock of the next holder.
/// Method: renewals and the release go over different connections, and the older ones hang.
#[rstest]
#[case::of_a_free_lock(None, -2)]
#[case::of_the_next_holder(Some("next"), -1)]
#[tokio::test]
async fn a_renewal_behind_its_release_changes_nothing(
    #[case] next: Option<&str>,
    #[case] life: i64,
) {
    let (server, guard, proxy) = held_with_a_renewal_under_way().await;
    guard.release().await.unwrap();
    let admin = server.admin();
    assert_eq!(admin.get(KEY), None);
    next.inspect(|next| admin.set(KEY, next));
    let renewals = admin.command_calls("evalsha");
    proxy.release_requests();
    wait::until_async(LIMIT, async || admin.command_calls("evalsha") > renewals).await;
    assert_eq!((admin.get(KEY).as_deref(), admin.pttl(KEY)), (next, life));
}

#[tokio::test]
async fn a_renewal_of_a_deleted_lock_makes_nothing() {
    let (server, locker) = server_and_locker().await;
    let admin = server.admin();
    let guard = locker.lock("k").expire(LEASE).renew().try_acquire().await.unwrap();
    admin.del(KEY);
    assert!(guard.lease().lost().await.is_lost());
    assert_eq!(admin.get(KEY), None);
    assert!(guard.release().await.unwrap_err().is_lost());
    assert_quiet(&server).await;
}

/// A lock whose guard lives on the test's runtime, and whose renewal hangs in the background's
/// connection; the next connections do not.
async fn held_with_a_renewal_under_way() -> (Server, LockGuard, Proxy) {
    let (server, proxy) = server_and_proxy();
    let locker = connect_ample(&proxy.url()).await;
    let guard = locker.lock("k").expire(LEASE).renew().acquire().await.unwrap();
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

/// Nothing is renewed, or even asked, for half a lease: renewals come after a third.
async fn assert_quiet(server: &Server) {
    let admin = server.admin();
    let counts = || ["evalsha", "eval", "pexpire"].map(|name| admin.command_calls(name));
    let before = counts();
    elapse(LEASE / 2).await;
    assert_eq!(counts(), before);
    assert_eq!(admin.get(KEY), None);
}
