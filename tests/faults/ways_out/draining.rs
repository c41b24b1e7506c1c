//! Draining before the end of a process. Draining is about all lockers of a process, so each of
//! these tests runs in a process of its own.

use std::env;
use std::process::{Command, exit};
use std::thread;
use std::time::Duration;

use lockable_runtime::{LockGuard, Locker, shutdown};
use lockable_tests::{Server, wait};

use crate::runtimes::{block_on, one_thread};
use crate::support::{LIMIT, ample, connect_ample, server_and_locker, server_and_proxy};
use crate::waiting::late_queries::{give_up, held_query};
use crate::waiting::support::{queued, waiter};

#[tokio::test]
async fn after_a_drain_no_lock_is_left() {
    if !is_alone() {
        return;
    }
    let (server, locker) = server_and_locker().await;
    for _ in 0..5 {
        drop(guards(&locker, 40).await);
        drains(&server).await;
    }
    locker.lock("k").run(async {}).await.unwrap();
}

#[tokio::test]
async fn a_drain_with_nothing_to_do_is_done() {
    if !is_alone() {
        return;
    }
    shutdown(Duration::ZERO).await.unwrap();
    let (_server, locker) = server_and_locker().await;
    locker.lock("k").run(async {}).await.unwrap();
    let _held = locker.lock("k").acquire().await.unwrap();
    shutdown(Duration::ZERO).await.unwrap();
}

#[tokio::test]
async fn a_stalled_drain_ends_in_time_and_can_be_repeated() {
    if !is_alone() {
        return;
    }
    let (server, locker) = server_and_locker().await;
    let guards = guards(&locker, 3).await;
    server.pause();
    drop(guards);
    let error = wait::ends(shutdown(SHORT)).await.unwrap_err();
    let keys = "(`disLock:n:0`, `disLock:n:1`, `disLock:n:2`)";
    let text =
        format!("3 locks were not released within {SHORT:?} {keys}; each ends with its lease");
    assert!(error.is_unavailable() && error.to_string() == text, "{error}");
    // One that is dropped takes nothing from the next one.
    assert!(tokio::time::timeout(SHORT, shutdown(LIMIT)).await.is_err());
    server.resume();
    drains(&server).await;
}

#[test]
fn a_drain_needs_no_running_runtime() {
    if !is_alone() {
        return;
    }
    let server = Server::start();
    let locker = ample(&server.url()).connect_lazy().unwrap();
    drop(one_thread().block_on(guards(&locker, 40)));
    drop(locker);
    block_on(drains(&server));
}

/// Calls that were refused for certain, or that no server could have heard of, hold nothing.
#[tokio::test]
async fn a_drain_does_not_wait_for_failed_calls() {
    if !is_alone() {
        return;
    }
    let (server, locker) = server_and_locker().await;
    server.admin().command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(locker.lock("k").acquire().await.unwrap_err().is_unavailable());
    shutdown(Duration::ZERO).await.unwrap();
    let unconnected = ample(&server.url()).connect_lazy().unwrap();
    server.kill();
    assert!(unconnected.lock("k").acquire().await.unwrap_err().is_unavailable());
    shutdown(Duration::ZERO).await.unwrap();
}

/// A task that is aborted in the middle of its call counts as well.
#[tokio::test]
async fn a_drain_waits_for_aborted_calls() {
    if !is_alone() {
        return;
    }
    let (server, proxy) = server_and_proxy();
    let locker = connect_ample(&proxy.url()).await;
    proxy.hold_open_requests();
    let call = tokio::spawn(locker.lock("k").acquire());
    proxy.wait_held(LIMIT).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    let error = shutdown(SHORT).await.unwrap_err();
    let words = "1 lock of a call without a reply may still be held after 200ms (`disLock:k`)";
    assert!(error.is_unavailable() && error.to_string().starts_with(words), "{error}");
    proxy.release_requests();
    drains(&server).await;
}

/// Otherwise the end of the process would cut that off, and the lock be handed off to no one.
#[tokio::test]
async fn a_drain_waits_until_dropped_waiters_leave_the_queue() {
    if !is_alone() {
        return;
    }
    let (server, proxy) = server_and_proxy();
    let guard = connect_ample(&server.url()).await.lock("k").acquire().await.unwrap();
    let waiter = waiter(&connect_ample(&proxy.url()).await);
    queued(&server, 1).await;
    proxy.hold_open_requests();
    waiter.abort();
    assert!(waiter.await.unwrap_err().is_cancelled());
    let error = shutdown(SHORT).await.unwrap_err();
    assert!(error.to_string().contains("an entry in a queue"), "{error}");
    proxy.release_requests();
    shutdown(LIMIT).await.unwrap();
    queued(&server, 0).await;
    guard.release().await.unwrap();
}

/// Its request may grant a lock that only this process can release.
#[tokio::test]
async fn a_drain_waits_for_a_dropped_query() {
    if !is_alone() {
        return;
    }
    let (server, proxy) = server_and_proxy();
    let locker = connect_ample(&proxy.url()).await;
    give_up(held_query(&server, &proxy, &locker, LIMIT).await).await;
    assert!(shutdown(SHORT).await.unwrap_err().is_unavailable());
    proxy.release_requests();
    drains(&server).await;
}

/// The first half is the process that ends, the second the one that looks.
#[test]
fn a_process_that_drains_leaves_no_lock() {
    const URL: &str = "LOCKABLE_TEST_SERVER";
    if let Ok(url) = env::var(URL) {
        return one_thread().block_on(drop_drain_and_exit(&url));
    }
    let server = Server::start();
    assert!(again().env(URL, server.url()).status().unwrap().success());
    assert_eq!(server.admin().keys("disLock:*"), [""; 0]);
    // Eight by themselves, and the others together.
    let deletions = server.admin().command_calls("del");
    assert!(deletions > 8, "{deletions}");
}

async fn drop_drain_and_exit(url: &str) {
    let locker = connect_ample(url).await;
    drop(guards(&locker, 40).await);
    shutdown(LIMIT).await.unwrap();
    exit(0);
}

/// As long as a drain is asked for while it cannot end.
const SHORT: Duration = Duration::from_millis(200);

/// Then no lock is left.
async fn drains(server: &Server) {
    shutdown(LIMIT).await.unwrap();
    assert_eq!(server.admin().keys("disLock:*"), [""; 0]);
}

async fn guards(locker: &Locker, count: usize) -> Vec<LockGuard> {
    let mut guards = Vec::new();
    for n in 0..count {
        guards.push(locker.lock(format!("n:{n}")).acquire().await.unwrap());
    }
    guards
}

/// Whether this is the test's own process; otherwise runs the test in one.
fn is_alone() -> bool {
    const ALONE: &str = "LOCKABLE_TEST_ALONE";
    if env::var_os(ALONE).is_some() {
        return true;
    }
    let output = again().env(ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "{said}");
    false
}

/// This test program with this test, which has given its name to its thread.
fn again() -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", thread::current().name().unwrap(), "--nocapture"]);
    command
}
