//! A connection that breaks is no end of hearing: the check of all leases that follows begins again.

use lockable_tests::{Proxy, Server};

use super::support::{end, held, looks, stopped, warm};
use crate::support::{connect, start, until};

#[tokio::test]
async fn a_new_connection_hears_of_deletions() {
    let server = Server::start();
    let proxy = Proxy::start(&server);
    let (locker, admin) = (connect(&proxy.url()).await, server.admin());
    let body = held(&locker, "k", &admin).await;
    let before = looks(&admin);
    proxy.cut();
    locker.lock("other").run(async {}).await.unwrap();
    until(async || looks(&admin) > before).await;
    admin.del("disLock:k");
    stopped(body).await;
}

/// Goal: silence is not read as "held".
#[tokio::test]
async fn a_lock_that_is_deleted_in_the_silence_stops_its_body() {
    let (_server, locker, admin) = start().await;
    let body = held(&locker, "k", &admin).await;
    admin.command::<u64>(&["CLIENT", "KILL", "TYPE", "normal"]);
    admin.del("disLock:k");
    assert!(stopped(body).await.contains("it has no holder"));
}

#[tokio::test]
async fn a_restart_stops_the_bodies_of_its_locks() {
    let (server, locker, admin) = start().await;
    let body = held(&locker, "k", &admin).await;
    server.restart();
    assert!(stopped(body).await.contains("it has no holder"));
}

/// Goal: a connection that breaks is opened again for held locks alone.
#[tokio::test]
async fn an_idle_process_does_not_reconnect() {
    let (server, locker, admin) = warm().await;
    let guard = locker.lock("unrenewed").acquire().await.unwrap();
    let other = connect(&server.url()).await;
    let body = held(&other, "k", &admin).await;
    admin.reset_statistics();
    admin.command::<u64>(&["CLIENT", "KILL", "TYPE", "normal"]);
    // The connection of one locker, and the check that follows.
    let connections = || admin.command_calls("client|tracking");
    until(async || connections() > 0 && looks(&admin) > 0).await;
    assert_eq!(connections(), 1);
    guard.release().await.unwrap();
    end(body).await;
}
