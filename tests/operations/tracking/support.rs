//! What the tests of tracking share.

use std::collections::HashMap;
use std::future::pending;
use std::time::Instant;

use lockable_runtime::{LockError, Locker};
use lockable_tests::{Admin, Server};
use tokio::task::JoinHandle;

use crate::support::{LIMIT, start, statistic, until};

/// A server, and a locker whose connection for renewals is open: to open it takes longer than a short lease waits
/// for an answer.
pub(super) async fn warm() -> (Server, Locker, Admin) {
    let (server, locker, admin) = start().await;
    warm_up(&locker, &admin).await;
    (server, locker, admin)
}

/// The same on a server that is there already.
pub(super) async fn warm_up(locker: &Locker, admin: &Admin) {
    drop(locker.lock("warm").acquire().await.unwrap());
    until(async || admin.get("disLock:warm").is_none()).await;
}

/// A body that ends only with its lock, which is renewed.
pub(super) fn hold(locker: &Locker, key: &str) -> Body {
    tokio::spawn(locker.lock(key).renew().run(pending()))
}

/// The same when the server was asked to track its lock.
pub(super) async fn held(locker: &Locker, key: &str, admin: &Admin) -> Body {
    let before = looks(admin);
    let body = hold(locker, key);
    until(async || looks(admin) > before).await;
    body
}

/// How often locks were looked at, or renewed, on a connection that hears of them.
pub(super) fn looks(admin: &Admin) -> u64 {
    admin.command_calls("client|caching")
}

/// How often a lock is looked at, at most, that was changed again and again since that moment: the pauses grow
/// from a tenth of a second to a second.
pub(super) fn most_looks(since: Instant) -> u64 {
    4 + 2 * since.elapsed().as_secs()
}

pub(super) type Body = JoinHandle<Result<(), LockError>>;

/// Why the body was stopped, which has to be long before the next renewal.
pub(super) async fn stopped(body: Body) -> String {
    let outcome = tokio::time::timeout(LIMIT, body).await.expect("the body ends").unwrap();
    let error = outcome.unwrap_err();
    assert!(error.is_lost(), "{error}");
    error.to_string()
}

/// Ends a body, which has its lock until then.
pub(super) async fn end(body: Body) {
    body.abort();
    assert!(body.await.unwrap_err().is_cancelled(), "the body runs until now");
}

/// How many keys the server tracks for anyone.
pub(super) fn tracked(admin: &Admin) -> u64 {
    statistic(admin, "tracking_total_items")
}

/// What the server's `ACL LOG` says that the user may not do, each as often as it was tried.
pub(super) fn refused(admin: &Admin) -> Vec<String> {
    let log: Vec<HashMap<String, redis::Value>> = admin.command(&["ACL", "LOG"]);
    let text = |value: &redis::Value| redis::from_redis_value_ref::<String>(value).unwrap();
    let tries = |value: &redis::Value| redis::from_redis_value_ref::<usize>(value).unwrap();
    let each = log.iter().map(|entry| (text(&entry["object"]), tries(&entry["count"])));
    // The client library names itself, as far as it may.
    let ours = each.filter(|(object, _)| object != "client|setinfo" && object != "client|setname");
    ours.flat_map(|(object, count)| vec![object; count]).collect()
}
