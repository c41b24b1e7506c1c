//! Networks that fail under a renewed body.

use std::time::Duration;

use lockable_tests::{ConnectionTraffic, Proxy, Server, wait};
use rstest::rstest;

use super::stepping::Stepping;
use crate::support::{LIMIT, connect, elapse, server_and_proxy};

const LEASE: Duration = Duration::from_secs(3);

/// A machine that stalls for longer in a lease leaves a try out, or looks too late.
const STALL: Duration = Duration::from_millis(500);

#[tokio::test]
async fn a_connection_cut_repeatedly_costs_nothing() {
    let (_server, proxy, body) = at_work("cut").await;
    for _ in 0..5 {
        elapse(LEASE / 4).await;
        proxy.cut();
    }
    body.outlives_its_lease().await;
}

#[tokio::test]
async fn a_network_outage_stops_the_body_at_its_deadline() {
    let (_server, proxy, body) = at_work("gone").await;
    proxy.refuse();
    proxy.cut();
    body.ends_at_its_deadline().await;
}

/// Of the slower one no try is answered in time, but each late answer counts from the sending of its try.
#[rstest]
#[case::answers_in_time("slow", 60)]
#[case::answers_after_the_next_try("slower", 200)]
#[tokio::test]
async fn a_slow_link_costs_nothing(#[case] name: &str, #[case] millis: u64) {
    let (_server, proxy, body) = at_work(name).await;
    proxy.delay(Duration::from_millis(millis));
    body.is_renewed().await;
    body.outlives_its_lease().await;
}

#[tokio::test]
async fn two_swallowed_requests_cost_nothing() {
    let (_server, proxy, body) = at_work("two-requests").await;
    proxy.hold_requests();
    two_tries_come(&proxy, &body).await;
    proxy.release_requests();
    body.outlives_its_lease().await;
}

#[tokio::test]
async fn two_swallowed_replies_cost_nothing() {
    let (_server, proxy, body) = at_work("two-replies").await;
    proxy.hold_replies();
    two_tries_come(&proxy, &body).await;
    // Nothing of them arrives, neither in time nor late.
    proxy.cut();
    proxy.release_replies();
    body.outlives_its_lease().await;
}

/// The server keeps the lock, because the requests arrive; the holder cannot know.
#[tokio::test]
async fn swallowed_replies_stop_the_body_at_its_deadline() {
    let (server, proxy, body) = at_work("all-replies").await;
    let pace = body.pace;
    proxy.hold_replies();
    let key = body.key.clone();
    body.ends_at_its_deadline().await;
    assert!(server.admin().pttl(&key) > 0 || pace.lag() > STALL);
}

#[tokio::test]
async fn at_least_three_tries_fit_into_a_lease() {
    let (_server, proxy, body) = at_work("three-tries").await;
    let (tries, pace) = (proxy.commands("EVALSHA"), body.pace);
    proxy.hold_open_replies();
    proxy.hold_requests();
    body.ends_at_its_deadline().await;
    // On later connections the greeting comes first, and gets no answer.
    let tries = proxy.commands("EVALSHA") - tries;
    assert!((3..=9).contains(&tries) || pace.lag() > STALL, "{tries} tries");
}

#[tokio::test]
async fn a_hanging_connection_is_replaced_in_time() {
    let (_server, proxy, body) = at_work("blackhole").await;
    let (accepted, pace) = (proxy.accepted(), body.pace);
    proxy.hold_open_requests();
    body.outlives_its_lease().await;
    let is_replaced = proxy.accepted() > accepted;
    assert!(is_replaced || pace.lag() > STALL);
    assert!(proxy.connection(accepted - 1, ConnectionTraffic::is_open));
}

/// As above, where the connection hangs before its greeting: it is given up when connecting has
/// taken too long, which is two seconds.
#[tokio::test]
async fn a_hanging_first_connection_is_replaced_in_time() {
    let (_server, proxy, body) = at_work_again("hanging-greeting", 2 * LEASE).await;
    proxy.hold_requests();
    // That of the renewals, and that by which holders are asked to stop.
    wait::until_async(LIMIT, async || proxy.accepted() >= 3).await;
    let pace = body.pace;
    proxy.hold_open_requests();
    body.outlives_its_lease().await;
    assert!(proxy.accepted() > 3 || pace.lag() > STALL);
    assert!(proxy.connection(1, ConnectionTraffic::is_open));
}

#[tokio::test]
async fn a_silence_that_ends_in_time_costs_nothing() {
    let (_server, proxy, body) = at_work_again("silence", 2 * LEASE).await;
    proxy.hold_requests();
    // The first renewal opens a connection, which gets no answer.
    wait::until_async(LIMIT, async || proxy.accepted() >= 2).await;
    elapse(LEASE / 3).await;
    proxy.release_requests();
    body.outlives_its_lease().await;
}

/// Waits until the holder has tried twice to renew, or until a stall of the machine has cost the lock.
async fn two_tries_come(proxy: &Proxy, body: &Stepping) {
    let tries = proxy.commands("EVALSHA");
    wait::until_async(LIMIT, async || {
        proxy.commands("EVALSHA") >= tries + 2 || !body.lease().is_held()
    })
    .await;
    body.is_held_unless_stalled(STALL).await;
}

/// A body that was renewed twice: the connection of the renewals is open, and what was asked over it
/// when it opened is answered.
async fn at_work(name: &str) -> (Server, Proxy, Stepping) {
    let (server, proxy, body) = at_work_again(name, LEASE).await;
    body.is_renewed().await;
    body.is_renewed().await;
    (server, proxy, body)
}

/// A body whose first renewal is still to come.
async fn at_work_again(name: &str, expire: Duration) -> (Server, Proxy, Stepping) {
    let (server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    let body = Stepping::start(&locker, name, expire).await;
    (server, proxy, body)
}
