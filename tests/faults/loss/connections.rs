//! Networks that fail under a renewed body.

use std::time::Duration;

use lockable_tests::{ConnectionTraffic, Proxy, Server, wait};
use rstest::rstest;

use super::stepping::Stepping;
use crate::cancellation::late_requests::overtake;
use crate::support::{connect, elapse, server_and_proxy};

/// Of bodies that must outlive a fault: it is renewed after a third of it, which is too short for the connection to rest,
/// and the rest is for a slow machine.
const KEPT: Duration = Duration::from_secs(12);

/// Of bodies whose end is waited for.
const ENDING: Duration = Duration::from_secs(6);

#[tokio::test]
async fn a_connection_cut_repeatedly_costs_nothing() {
    let (_server, proxy, body) = at_work("cut", KEPT).await;
    for _ in 0..2 {
        for _ in 0..3 {
            proxy.cut();
            elapse(KEPT / 18).await;
        }
        body.outlives_its_lease().await;
    }
}

#[tokio::test]
async fn a_network_outage_stops_the_body_at_its_deadline() {
    let (_server, proxy, body) = at_work("gone", ENDING).await;
    proxy.refuse();
    proxy.cut();
    body.ends_at_its_deadline().await;
}

/// Of the slower one no try is answered in time, but each late answer counts from the sending of its try.
#[rstest]
#[case::answers_in_time("slow", 60)]
#[case::answers_after_the_next_try("slower", 600)]
#[tokio::test]
async fn a_slow_link_costs_nothing(#[case] name: &str, #[case] millis: u64) {
    let (_server, proxy, body) = at_work(name, KEPT).await;
    proxy.delay(Duration::from_millis(millis));
    body.outlives_its_lease().await;
}

#[tokio::test]
async fn two_swallowed_requests_cost_nothing() {
    let (_server, proxy, body) = at_work("two-requests", KEPT).await;
    proxy.hold_requests();
    two_tries_come(&proxy).await;
    proxy.release_requests();
    body.outlives_its_lease().await;
}

#[tokio::test]
async fn two_swallowed_replies_cost_nothing() {
    let (_server, proxy, body) = at_work("two-replies", KEPT).await;
    proxy.hold_replies();
    two_tries_come(&proxy).await;
    // Nothing of them arrives, neither in time nor late.
    proxy.cut();
    proxy.release_replies();
    body.outlives_its_lease().await;
}

/// The server keeps the lock, because the requests arrive; the holder cannot know.
#[tokio::test]
async fn swallowed_replies_stop_the_body_at_its_deadline() {
    let (server, proxy, body) = at_work("all-replies", ENDING).await;
    proxy.hold_replies();
    let renewals = server.admin().command_calls("pexpire");
    body.ends_at_its_deadline().await;
    assert!(server.admin().command_calls("pexpire") > renewals);
}

#[tokio::test]
async fn at_least_three_tries_fit_into_a_lease() {
    let (_server, proxy, body) = at_work("three-tries", KEPT).await;
    let tries = proxy.commands("EVALSHA");
    proxy.hold_open_replies();
    proxy.hold_requests();
    body.ends_at_its_deadline().await;
    // On later connections the handshake comes first, and gets no answer.
    let tries = proxy.commands("EVALSHA") - tries;
    assert!((3..=9).contains(&tries), "{tries} tries");
}

#[tokio::test]
async fn a_hanging_connection_is_replaced_in_time() {
    let (_server, proxy, body) = at_work("blackhole", KEPT).await;
    let accepted = proxy.accepted();
    proxy.hold_open_requests();
    wait::until_async(wait::HANG, async || proxy.accepted() > accepted).await;
    body.outlives_its_lease().await;
    assert!(proxy.connection(accepted - 1, ConnectionTraffic::is_open));
}

/// As above, where the connection hangs before its handshake: it is given up when connecting has
/// taken too long, which is two seconds.
#[tokio::test]
async fn a_hanging_first_connection_is_replaced_in_time() {
    let (_server, proxy, body) = started("hanging-handshake", KEPT).await;
    proxy.hold_requests();
    // That of the renewals, and that by which holders are asked to stop.
    wait::until_async(wait::HANG, async || proxy.accepted() >= 3).await;
    proxy.hold_open_requests();
    wait::until_async(wait::HANG, async || proxy.accepted() > 3).await;
    body.outlives_its_lease().await;
    assert!(proxy.connection(1, ConnectionTraffic::is_open));
}

#[tokio::test]
async fn a_silence_that_ends_in_time_costs_nothing() {
    let (_server, proxy, body) = started("silence", KEPT).await;
    proxy.hold_requests();
    // The first look opens a connection, which gets no answer.
    wait::until_async(wait::HANG, async || proxy.accepted() >= 2).await;
    elapse(KEPT / 9).await;
    proxy.release_requests();
    body.outlives_its_lease().await;
}

/// Waits until the holder has tried twice to renew.
async fn two_tries_come(proxy: &Proxy) {
    proxy.wait_for_command("EVALSHA", proxy.commands("EVALSHA") + 2, wait::HANG).await;
}

/// A body that was renewed: the connection of the renewals is open, and what was asked over it when it opened is
/// answered.
async fn at_work(name: &str, expire: Duration) -> (Server, Proxy, Stepping) {
    let (server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    overtake(&locker).await;
    let body = Stepping::start(&locker, name, expire).await;
    body.is_renewed().await;
    (server, proxy, body)
}

/// A body whose first renewal is still to come, and has no connection yet.
async fn started(name: &str, expire: Duration) -> (Server, Proxy, Stepping) {
    let (server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    let body = Stepping::start(&locker, name, expire).await;
    (server, proxy, body)
}
