//! What the tests of tracking share.

use std::future::pending;
use std::time::{Duration, Instant};

use lockable_runtime::{LockError, Locker};
use lockable_tests::{Admin, wait};
use tokio::task::JoinHandle;

pub(super) use crate::support::{LIMIT, PATIENCE};

/// A lease that no test outlives: its first renewal is due after minutes, long behind every limit.
pub(super) const LONG: Duration = Duration::from_secs(600);

/// A locker with a long lease. On a machine that stalls, it asks nothing twice.
pub(super) async fn connect(url: &str) -> Locker {
    let builder = Locker::builder().url(url).expire(LONG).command_deadline(PATIENCE);
    builder.connect().await.unwrap()
}

/// A body that ends only with its lock, which is renewed.
pub(super) fn hold(locker: &Locker, key: &str) -> Body {
    let lock = locker.lock(key).renew();
    tokio::spawn(async move { lock.run(pending::<()>()).await })
}

/// The same when the server was asked to track its lock.
pub(super) async fn held(locker: &Locker, key: &str, admin: &Admin) -> Body {
    let before = looks(admin);
    let body = hold(locker, key);
    wait::until_async(LIMIT, async || looks(admin) > before).await;
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

/// Opens the connection that renews, which takes longer than a short lease waits for an answer.
pub(super) async fn warm_up(locker: &Locker, admin: &Admin) {
    drop(locker.lock("warm").acquire().await.unwrap());
    wait::until_async(LIMIT, async || admin.get("disLock:warm").is_none()).await;
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
    let stats = admin.info("stats");
    let count = stats.lines().find_map(|line| line.strip_prefix("tracking_total_items:"));
    count.unwrap().parse().unwrap()
}

/// What the server's `ACL LOG` says that the user may not do, each as often as it was tried.
pub(super) fn refused(admin: &Admin) -> Vec<String> {
    let log =
        admin.command::<Vec<std::collections::HashMap<String, redis::Value>>>(&["ACL", "LOG"]);
    let text = |value: &redis::Value| redis::from_redis_value_ref::<String>(value).unwrap();
    let tries = |value: &redis::Value| redis::from_redis_value_ref::<usize>(value).unwrap();
    let each = log.iter().map(|entry| (text(&entry["object"]), tries(&entry["count"])));
    // The client library names itself, as far as it may.
    let ours = each.filter(|(object, _)| object != "client|setinfo" && object != "client|setname");
    ours.flat_map(|(object, count)| vec![object; count]).collect()
}
