//! Runs with `once` whose end Redis does not learn of, or whose process dies.

use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Peer, Server, wait};

use crate::support::{KEY, LIMIT, LONG, elapse, impatient};

#[tokio::test]
async fn a_killed_run_is_repeated() {
    let server = Server::start();
    let locker = impatient(&server.url()).connect().await.unwrap();
    let worker = Peer::start(env!("CARGO_BIN_EXE_lead_worker"), [&server.url(), "1000"]);
    assert_eq!(worker.hear(), "runs");
    let waiting = tokio::spawn(locker.lock("k").once().acquire());
    worker.kill();
    waiting.await.unwrap().unwrap().release().await.unwrap();
}

/// The release in the background leaves the lock done all the same.
#[tokio::test]
async fn a_run_is_done_when_redis_comes_back_within_its_lease() {
    let (server, locker, guard) = at_work(LONG).await;
    server.pause();
    assert!(guard.keep(LONG * 60).await.unwrap_err().is_unavailable());
    server.resume();
    let admin = server.admin();
    wait::until_async(LIMIT, async || admin.get(KEY).unwrap().starts_with('~')).await;
    assert!(admin.pttl(KEY) > 3_000_000);
    assert!(locker.lock("k").once().acquire().await.unwrap_err().is_done());
}

#[tokio::test]
async fn a_run_is_repeated_when_redis_stays_away_or_forgets() {
    let (server, locker, guard) = at_work(Duration::from_secs(1)).await;
    server.pause();
    assert!(guard.keep(LONG * 60).await.is_err());
    elapse(Duration::from_secs(1)).await;
    server.resume();
    let guard = locker.lock("k").once().acquire().await.unwrap();
    guard.keep(LONG * 60).await.unwrap();
    server.admin().flush();
    locker.lock("k").once().acquire().await.unwrap().release().await.unwrap();
}

async fn at_work(lease: Duration) -> (Server, Locker, LockGuard) {
    let server = Server::start();
    let locker = impatient(&server.url()).connect().await.unwrap();
    let guard = locker.lock("k").expire(lease).once().acquire().await.unwrap();
    (server, locker, guard)
}
