//! Servers that cannot serve writes: out of memory, a replica, still loading.

use std::time::Duration;

use lockable_runtime::LockErrorKind;
use lockable_runtime::Locker;
use lockable_tests::{Admin, Server};
use rstest::rstest;

use super::unready::{fail_to_save, run_for_ever, saving};
use crate::support::{KEY, LONG, Runs, connect_ample, decorated, freed};
use crate::waiting::support::{in_queue, is_served_last, renewed};

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

/// What is held stays held, and goes to the first waiter, while no lock can be acquired.
#[tokio::test]
async fn a_server_out_of_memory_renews_and_hands_off() {
    let (server, admin, locker) = prepared().await;
    let other = connect_ample(&server.url()).await;
    let guard = locker.lock("k").expire(LEASE).renew().acquire().await.unwrap();
    let waiter = in_queue(&server, &other).await;
    admin.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    renewed(&guard).await;
    guard.lease().extend(LONG).await.unwrap();
    assert!(admin.pttl(KEY) > 50_000);
    guard.release().await.unwrap();
    is_served_last(&server, waiter).await;
    assert!(other.lock("k").try_acquire().await.unwrap_err().is_unavailable());
}

/// It is renewed after a third of it.
const LEASE: Duration = Duration::from_secs(9);

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

#[tokio::test]
async fn a_lock_on_a_server_that_cannot_save_is_released_later() {
    let server = saving();
    let (admin, locker) = (server.admin(), connect_ample(&server.url()).await);
    let guard = locker.lock("k").acquire().await.unwrap();
    fail_to_save(&server);
    let error = guard.release().await.unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains("MISCONF"), "{error}");
    admin.command::<()>(&["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"]);
    freed(&server).await;
}

/// While a script runs too long the server answers with refusals only.
#[tokio::test]
async fn a_server_busy_with_a_script_is_unavailable() {
    let (server, admin, locker) = prepared().await;
    admin.command::<()>(&["CONFIG", "SET", "busy-reply-threshold", "10"]);
    let script = run_for_ever(&server);
    is_unavailable(&locker, "BUSY").await;
    admin.command::<()>(&["SCRIPT", "KILL"]);
    script.join().unwrap();
    locker.lock("k").try_run(async {}).await.unwrap();
}

#[rstest]
#[case::that_misses_its_replicas("min-replicas-to-write", "1", "0", "NOREPLICAS")]
#[case::at_its_client_limit("maxclients", "1", "100", "max number of clients reached")]
#[tokio::test]
async fn a_server_is_unavailable_as_long_as_its_settings_say(
    #[case] setting: &str,
    #[case] value: &str,
    #[case] mended: &str,
    #[case] words: &str,
) {
    let (_server, admin, locker) = prepared().await;
    admin.command::<()>(&["CONFIG", "SET", setting, value]);
    // At its limit it refuses connections that are new.
    admin.command::<u64>(&["CLIENT", "KILL", "TYPE", "normal"]);
    is_unavailable(&locker, words).await;
    admin.command::<()>(&["CONFIG", "SET", setting, mended]);
    locker.lock("k").try_run(async {}).await.unwrap();
}

async fn is_unavailable(locker: &Locker, words: &str) {
    let error = locker.lock("k").acquire().await.unwrap_err();
    assert!(error.is_unavailable() && error.kind() != LockErrorKind::Refused, "{error:?}");
    assert!(error.to_string().contains(words), "{error}");
}

async fn prepared() -> (Server, Admin, Locker) {
    let server = Server::start();
    let (admin, locker) = (server.admin(), connect_ample(&server.url()).await);
    (server, admin, locker)
}
