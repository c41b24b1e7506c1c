//! Losses that a server brings: it forgets, it pauses, it stalls, it is gone.

use std::time::Duration;

use lockable_tests::Server;

use super::stepping::Stepping;
use crate::support::{connect, elapse};

const LEASE: Duration = Duration::from_secs(2);

#[tokio::test]
async fn a_flush_stops_the_body_at_the_next_renewal() {
    let (server, body) = at_work("flushed", 5 * LEASE).await;
    server.admin().flush();
    body.ends_by_refusal("no one holds it").await;
}

#[tokio::test]
async fn a_stalled_server_stops_the_body_at_its_deadline() {
    let (server, body) = at_work("stalled", LEASE).await;
    server.pause();
    body.ends_at_its_deadline().await;
    server.resume();
}

#[tokio::test]
async fn a_killed_server_stops_the_body_at_its_deadline() {
    let (server, body) = at_work("killed", LEASE).await;
    server.kill();
    body.ends_at_its_deadline().await;
}

/// The renewals find the new server long before the lease ends, and nothing there.
#[tokio::test]
async fn a_restart_without_data_stops_the_body_at_once() {
    let (server, body) = at_work("restarted", 5 * LEASE).await;
    server.restart();
    body.ends_by_refusal("no one holds it").await;
}

#[tokio::test]
async fn a_pause_shorter_than_the_lease_costs_nothing() {
    let (server, body) = at_work("short-pause", 2 * LEASE).await;
    elapse(LEASE / 2).await;
    server.admin().command::<()>(&["CLIENT", "PAUSE", "2000"]);
    elapse(3 * LEASE).await;
    assert!(body.is_at_work());
    body.continues().await;
}

#[tokio::test]
async fn a_pause_longer_than_the_lease_stops_the_body() {
    let (server, body) = at_work("long-pause", LEASE).await;
    server.admin().command::<()>(&["CLIENT", "PAUSE", "6000"]);
    body.ends_at_its_deadline().await;
}

#[tokio::test]
async fn a_temporary_demotion_costs_nothing() {
    let (server, body) = at_work("replica", 2 * LEASE).await;
    server.admin().command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    elapse(LEASE).await;
    server.admin().command::<()>(&["REPLICAOF", "NO", "ONE"]);
    elapse(3 * LEASE).await;
    assert!(body.is_at_work());
}

#[tokio::test]
async fn a_lasting_demotion_stops_the_body_at_its_deadline() {
    let (server, body) = at_work("replica-for-ever", LEASE).await;
    server.admin().command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    body.ends_at_its_deadline().await;
}

async fn at_work(name: &str, expire: Duration) -> (Server, Stepping) {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    let body = Stepping::start(&locker, name, expire).await;
    (server, body)
}
