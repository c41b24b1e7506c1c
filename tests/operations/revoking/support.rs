//! What the tests of asking and taking away share.

use std::time::Duration;

use lockable_runtime::admin::{HeldLock, Revoked};
use lockable_runtime::{LockError, LockGuard, Locker, distributed_lock};
use lockable_tests::{Admin, Server, wait};

use crate::support::{LIMIT, connect, until};

/// The hold of a lock that has a holder.
pub(super) async fn held(locker: &Locker, key: &str) -> HeldLock {
    locker.admin().holder(key).await.unwrap().expect("it has a holder")
}

/// The same, once its process listens.
pub(super) async fn listens(server: &Server, locker: &Locker, key: &str) -> HeldLock {
    let (seen, admin) = (held(locker, key).await, server.admin());
    let process = seen.holder().process().unwrap();
    until(async || listeners(&admin, &format!("lockable:revoke:{process}")) > 0).await;
    seen
}

/// A locker that listens already: it has held this lock until it was asked to stop.
pub(super) async fn listener(url: &str, operator: &Locker, key: &str) -> Locker {
    let locker = connect(url).await;
    let guard = locker.lock(key).renew().acquire().await.unwrap();
    let seen = held(operator, key).await;
    stopped(operator, &seen, &guard).await;
    guard.release().await.unwrap();
    locker
}

/// Asks the holder of what was seen until it hears that.
pub(super) async fn stopped(operator: &Locker, seen: &HeldLock, guard: &LockGuard) {
    let admin = operator.admin();
    until(async || {
        admin.revoke(seen, "why", Duration::ZERO).await.unwrap();
        !guard.lease().is_held()
    })
    .await;
}

/// How many clients are subscribed to a channel at this server.
pub(super) fn listeners(admin: &Admin, channel: &str) -> u64 {
    admin.command::<(String, u64)>(&["PUBSUB", "NUMSUB", channel]).1
}

/// A body that looks whether it may go on.
#[distributed_lock(key = "sync", expire = 60, renew, locker = locks, guard = lock)]
pub(super) fn works_while_held(locks: &Locker) -> Result<u8, LockError> {
    wait::until(LIMIT, || !lock.is_held());
    Ok(if lock.is_lost() { 0 } else { 7 })
}

/// Asks the holder of what was seen, who lets go of it.
pub(super) async fn ask(operator: &Locker, seen: &HeldLock, guard: LockGuard) {
    let admin = operator.admin();
    let asking = async { admin.revoke(seen, "why", LIMIT).await.unwrap() };
    let let_go = async {
        let error =
            tokio::time::timeout(2 * LIMIT, guard.lease().lost()).await.expect("it hears of it");
        assert!(error.is_revoked());
        guard.release().await.unwrap();
    };
    let (revoked, ()) = tokio::join!(asking, let_go);
    assert!(matches!(revoked, Revoked::Released { .. }), "{revoked:?}");
}
