//! Losses that a server brings: it forgets, it pauses, it stalls, it is gone; and those that another client
//! brings, whose data is left alone.

use std::time::Duration;

use lockable_tests::{Admin, Server, clock, wait};
use rstest::rstest;

use super::stepping::Stepping;
use crate::cancellation::late_requests::overtake;
use crate::refusals::run_for_ever;
use crate::support::{LONG, connect_ample, server_and_locker};

/// Of bodies whose end is waited for.
const ENDING: Duration = Duration::from_secs(3);

/// Of bodies that must outlive a fault: it is renewed after a third of it, and the rest is for a slow machine.
const KEPT: Duration = Duration::from_secs(18);

/// Of bodies that a fault stops long before its end.
const STOPPED: Duration = Duration::from_secs(30);

#[rstest]
#[case::stalled("stalled", Server::pause)]
#[case::killed("killed", Server::kill)]
#[case::paused_for_longer("long-pause", |server: &Server| pause_clients(server, FOR_EVER))]
#[case::paused_for_writes("write-pause", pause_writes)]
#[case::demoted_for_ever("replica-for-ever", demote)]
#[tokio::test]
async fn a_silent_server_stops_the_body_at_its_deadline(
    #[case] name: &str,
    #[case] fault: fn(&Server),
) {
    let (server, body) = at_work(name, ENDING).await;
    fault(&server);
    body.ends_at_its_deadline().await;
}

/// While a script of another client runs for too long, each renewal is refused.
#[tokio::test]
async fn a_server_busy_with_a_script_stops_the_body_at_its_deadline() {
    let (server, locker) = server_and_locker().await;
    let admin = server.admin();
    admin.command::<()>(&["CONFIG", "SET", "busy-reply-threshold", "10"]);
    let body = Stepping::start(&locker, "busy", ENDING).await;
    let key = body.key.clone();
    let script = run_for_ever(&server);
    body.ends_at_its_deadline().await;
    admin.command::<()>(&["SCRIPT", "KILL"]);
    script.join().unwrap();
    locker.lock(key.trim_start_matches("disLock:")).run(async {}).await.unwrap();
}

#[tokio::test]
async fn a_pause_shorter_than_the_lease_costs_nothing() {
    let (server, body) = at_work("short-pause", KEPT).await;
    // The first renewal comes in the middle of it.
    pause_clients(&server, "7000");
    body.outlives_its_lease().await;
}

#[tokio::test]
async fn a_temporary_demotion_costs_nothing() {
    let (server, locker) = server_and_locker().await;
    let admin = server.admin();
    // So that a renewal is refused, and not the connection for it.
    overtake(&locker).await;
    let body = Stepping::start(&locker, "replica", KEPT).await;
    demote(&server);
    wait::until_async(wait::HANG, async || admin.info("errorstats").contains("READONLY")).await;
    admin.promote();
    body.outlives_its_lease().await;
}

/// In milliseconds.
const FOR_EVER: &str = "600000";

fn pause_clients(server: &Server, millis: &str) {
    server.admin().command::<()>(&["CLIENT", "PAUSE", millis]);
}

/// Reads are answered meanwhile.
fn pause_writes(server: &Server) {
    server.admin().command::<()>(&["CLIENT", "PAUSE", FOR_EVER, "WRITE"]);
}

fn demote(server: &Server) {
    server.admin().command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
}

/// The renewals find what is there long before the lease ends.
#[rstest]
#[case::flushed("flushed", |server: &Server| server.admin().flush())]
#[case::restarted_without_data("restarted", Server::restart)]
#[tokio::test]
async fn an_emptied_server_stops_the_body_at_once(#[case] name: &str, #[case] fault: fn(&Server)) {
    let (server, body) = at_work(name, STOPPED).await;
    fault(&server);
    body.ends_by_refusal("it has no holder").await;
}

/// The lease is over there long before its holder expects that.
#[tokio::test]
async fn a_clock_set_forward_stops_the_body_at_once() {
    if !clock::can_be_set() {
        return;
    }
    let server = Server::builder().clock().start();
    let locker = connect_ample(&server.url()).await;
    let body = Stepping::start(&locker, "clock", LONG).await;
    server.set_clock_forward(2 * LONG);
    body.ends_by_refusal("it has no holder").await;
}

#[rstest]
#[case::deleted("deleted", Admin::del, "it has no holder", "none")]
#[case::taken("taken", |admin: &Admin, key: &str| admin.set(key, "another"), "another holder has it", "string")]
#[case::pushed("pushed", push, "another holder has it", "list")]
#[case::evicted("evicted", evict, "it has no holder", "none")]
#[tokio::test]
async fn a_takeover_stops_the_body_at_once(
    #[case] name: &str,
    #[case] takeover: fn(&Admin, &str),
    #[case] why: &str,
    #[case] left: &str,
) {
    let (server, locker) = server_and_locker().await;
    let admin = server.admin();
    let body = Stepping::start(&locker, name, STOPPED).await;
    let key = body.key.clone();
    takeover(&admin, &key);
    body.ends_by_refusal(why).await;
    // Also what the call hands to the background, if anything, is over then.
    locker.lock("other").run(async {}).await.unwrap();
    let life = admin.pttl(&key);
    assert!(life < 0, "{key} was given {life} ms to live");
    assert_eq!(admin.type_of(&key), left);
}

fn push(admin: &Admin, key: &str) {
    admin.del(key);
    admin.command::<()>(&["LPUSH", key, "another"]);
}

/// The server makes room for what another client writes.
fn evict(admin: &Admin, _: &str) {
    admin.command::<()>(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    admin.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(admin.try_command(&["SET", "filler", "x"]).is_err());
    admin.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
}

async fn at_work(name: &str, expire: Duration) -> (Server, Stepping) {
    let (server, locker) = server_and_locker().await;
    let body = Stepping::start(&locker, name, expire).await;
    (server, body)
}
