//! Servers that cannot serve writes: out of memory, a replica, still loading.

use std::thread;

use lockable_runtime::Locker;
use lockable_tests::{Admin, Server, wait};

use crate::support::{KEY, LIMIT, Runs, connect, decorated, freed};

#[tokio::test]
async fn a_server_out_of_memory_releases_held_locks() {
    let (_server, admin, locker) = prepared().await;
    let guard = locker.lock("held").acquire().await.unwrap();
    admin.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    let runs = Runs::default();
    let error = decorated(&locker, &runs).await.unwrap_err();
    assert!(error.is_unavailable(), "{error:?}");
    assert!(error.to_string().contains("memory"), "{error}");
    assert_eq!((error.key(), runs.count()), (Some(KEY), 0));
    guard.release().await.unwrap();
    assert_eq!(admin.keys("disLock:*"), [""; 0]);
    admin.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
    decorated(&locker, &runs).await.unwrap();
}

#[tokio::test]
async fn a_demoted_server_is_left_and_found_again() {
    let (_server, admin, locker) = prepared().await;
    admin.command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    let runs = Runs::default();
    for _ in 0..3 {
        let error = decorated(&locker, &runs).await.unwrap_err();
        assert!(error.is_unavailable(), "{error:?}");
        assert!(error.to_string().contains("replica"), "{error}");
        assert_eq!((error.key(), runs.count()), (Some(KEY), 0));
    }
    admin.command::<()>(&["REPLICAOF", "NO", "ONE"]);
    decorated(&locker, &runs).await.unwrap();
    assert_eq!((runs.count(), admin.get(KEY)), (1, None));
}

/// A connection from before a promotion could not know which grants the server has missed.
#[tokio::test]
async fn a_replica_is_not_connected_to() {
    let (server, admin, _locker) = prepared().await;
    admin.command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    let error = Locker::connect(&server.url()).await.unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains("replica"), "{error:?}");
    admin.command::<()>(&["REPLICAOF", "NO", "ONE"]);
    Locker::connect(&server.url()).await.unwrap();
}

#[tokio::test]
async fn a_lock_on_a_new_replica_is_released_later() {
    let (server, admin, locker) = prepared().await;
    let guard = locker.lock("k").acquire().await.unwrap();
    admin.command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    let error = guard.release().await.unwrap_err();
    assert!(error.is_unavailable(), "{error:?}");
    admin.command::<()>(&["REPLICAOF", "NO", "ONE"]);
    freed(&server).await;
}

/// While a script runs too long the server answers with refusals only.
#[tokio::test]
async fn a_server_busy_with_a_script_is_unavailable() {
    let server = Server::builder().config("busy-reply-threshold", "10").start();
    let (admin, locker) = (server.admin(), connect(&server.url()).await);
    let caller = server.admin();
    let script = thread::spawn(move || caller.try_command(&["EVAL", "while true do end", "0"]));
    let is_busy = || admin.try_command(&["PING"]).is_err_and(|error| error.code() == Some("BUSY"));
    wait::until_async(LIMIT, async || is_busy()).await;
    let error = locker.lock("k").acquire().await.unwrap_err();
    admin.command::<()>(&["SCRIPT", "KILL"]);
    script.join().unwrap().unwrap_err();
    assert!(error.is_unavailable(), "{error:?}");
    assert!(error.to_string().contains("BUSY"), "{error}");
    locker.lock("k").try_run(async {}).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_that_misses_its_replicas_is_unavailable() {
    let (_server, admin, locker) = prepared().await;
    admin.command::<()>(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    let error = locker.lock("k").acquire().await.unwrap_err();
    assert!(error.to_string().contains("NOREPLICAS"), "{error}");
    assert!(error.is_unavailable() && !error.is_refused(), "{error:?}");
    admin.command::<()>(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    locker.lock("k").try_run(async {}).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_at_its_client_limit_is_unavailable() {
    let (server, admin, locker) = prepared().await;
    admin.command::<()>(&["CONFIG", "SET", "maxclients", "1"]);
    admin.command::<u64>(&["CLIENT", "KILL", "TYPE", "normal"]);
    let error = locker.lock("k").acquire().await.unwrap_err();
    assert!(error.is_unavailable() && !error.is_refused(), "{error:?}");
    assert!(error.to_string().contains(&server.url()), "{error}");
    admin.command::<()>(&["CONFIG", "SET", "maxclients", "100"]);
    locker.lock("k").try_run(async {}).await.unwrap().unwrap();
}

async fn prepared() -> (Server, Admin, Locker) {
    let server = Server::start();
    let (admin, locker) = (server.admin(), connect(&server.url()).await);
    (server, admin, locker)
}
