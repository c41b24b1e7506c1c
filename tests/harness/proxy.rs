//! The proxy counts what passes, and fails as the test asks.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use lockable_tests::{Admin, ConnectionTraffic, Proxy, Server, wait};
use redis::{AsyncConnectionConfig, Client};

#[test]
fn a_pipeline_is_one_round_trip() {
    let (_server, proxy) = server_and_proxy();
    let mut connection = connect(&proxy);
    let start = proxy.round_trips();
    redis::cmd("SET").arg("key").arg(1).exec(&mut connection).unwrap();
    redis::cmd("GET").arg("key").exec(&mut connection).unwrap();
    assert_eq!(proxy.round_trips() - start, 2);
    let mut pipeline = redis::pipe();
    pipeline.set("key", 2).get("key").del("key");
    pipeline.exec(&mut connection).unwrap();
    assert_eq!(proxy.round_trips() - start, 3);
    assert_eq!((proxy.commands("set"), proxy.commands("GET"), proxy.commands("DEL")), (2, 2, 1));
    assert_eq!(proxy.connection(0, ConnectionTraffic::round_trips), proxy.round_trips());
}

#[test]
fn many_segments_of_a_pipeline_are_one_round_trip() {
    let (_server, proxy) = server_and_proxy();
    let mut connection = connect(&proxy);
    let start = proxy.round_trips();
    let value = "x".repeat(100_000);
    let mut pipeline = redis::pipe();
    for _ in 0..50 {
        pipeline.set("key", &value).ignore();
    }
    // The first reply would otherwise come before the last segment goes.
    proxy.hold_replies();
    thread::scope(|scope| {
        scope.spawn(|| pipeline.exec(&mut connection).unwrap());
        proxy.wait_for_command_blocking("SET", 50, LIMIT);
        proxy.release_replies();
    });
    assert_eq!(proxy.round_trips() - start, 1);
}

#[test]
fn the_server_does_not_know_a_misspelt_command() {
    let (_server, proxy) = server_and_proxy();
    let admin = Admin::connect(&proxy.url());
    proxy.misspell(Some("SET"));
    let error = admin.try_command(&["SET", "key", "value"]).unwrap_err();
    assert!(error.to_string().contains("unknown command 'SE_', with args beginning with: 'key'"));
    assert_eq!((admin.get("key"), proxy.commands("SET")), (None, 1));
    proxy.misspell(None);
    admin.set("key", "value");
    assert_eq!(admin.get("key").as_deref(), Some("value"));
}

/// Goal: a command on a new connection gets past one that was sent earlier on an older one.
/// Method: the open connection is held, both commands write the same key, the older one wins.
#[test]
fn a_later_connection_overtakes_a_held_one() {
    let (server, proxy) = server_and_proxy();
    let early = Admin::connect(&proxy.url());
    proxy.hold_open_requests();
    thread::scope(|scope| {
        scope.spawn(|| early.set("key", "early"));
        proxy.wait_for_command_blocking("SET", 1, LIMIT);
        Admin::connect(&proxy.url()).set("key", "late");
        assert_eq!(server.admin().get("key").as_deref(), Some("late"));
        proxy.release_requests();
    });
    assert_eq!(server.admin().get("key").as_deref(), Some("early"));
}

#[tokio::test]
async fn a_request_outlives_the_client_that_sent_it() {
    let (server, proxy) = server_and_proxy();
    let mut connection = async_connection(&proxy).await;
    proxy.hold_requests();
    let sent = tokio::spawn(async move {
        redis::cmd("SET").arg("key").arg("value").exec_async(&mut connection).await
    });
    proxy.wait_held(LIMIT).await;
    proxy.hang_up();
    assert!(sent.await.unwrap().is_err());
    assert_eq!(server.admin().get("key"), None);
    proxy.release_requests();
    let admin = server.admin();
    wait::until_async(LIMIT, async || admin.get("key").is_some()).await;
    wait::until_async(LIMIT, async || proxy.open() == 0).await;
}

#[test]
fn a_connection_can_end_in_the_middle_of_a_reply() {
    let (server, proxy) = server_and_proxy();
    server.admin().set("key", "a value");
    let mut client = TcpStream::connect(proxy.addr()).unwrap();
    wait::until(LIMIT, || proxy.accepted() == 1);
    proxy.cut_off();
    client.write_all(b"GET key\r\n").unwrap();
    let mut received = String::new();
    client.read_to_string(&mut received).unwrap();
    assert_eq!(received, "$7\r\na ");
    assert_eq!(Admin::connect(&proxy.url()).get("key").as_deref(), Some("a value"));
}

#[tokio::test]
async fn a_held_reply_means_a_command_that_ran() {
    let (server, proxy) = server_and_proxy();
    let mut connection = async_connection(&proxy).await;
    proxy.hold_replies();
    let counted = tokio::spawn(async move {
        redis::cmd("INCR").arg("key").query_async::<u64>(&mut connection).await
    });
    proxy.wait_reply_held(LIMIT).await;
    assert_eq!(server.admin().get("key").as_deref(), Some("1"));
    assert!(!counted.is_finished());
    proxy.release_replies();
    assert_eq!(counted.await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn held_messages_do_not_hold_other_replies() {
    let (server, proxy) = server_and_proxy();
    let client = Client::open(proxy.url()).unwrap();
    let mut connection = async_connection(&proxy).await;
    let (mut sink, _stream) = client.get_async_pubsub().await.unwrap().split();
    sink.subscribe("channel").await.unwrap();
    proxy.hold_messages();
    assert_eq!(server.admin().command::<u64>(&["PUBLISH", "channel", "text"]), 1);
    proxy.wait_reply_held(LIMIT).await;
    redis::cmd("PING").exec_async(&mut connection).await.unwrap();
    proxy.release_messages();
}

#[test]
fn a_cut_closes_connections_and_loses_what_they_held() {
    let (server, proxy) = server_and_proxy();
    let admin = Admin::connect(&proxy.url());
    proxy.hold_requests();
    thread::scope(|scope| {
        let sent = scope.spawn(|| admin.try_command(&["SET", "key", "value"]));
        proxy.wait_for_command_blocking("SET", 1, LIMIT);
        proxy.cut();
        assert!(sent.join().unwrap().is_err());
    });
    proxy.release_requests();
    assert_eq!((proxy.open(), proxy.accepted()), (0, 1));
    Admin::connect(&proxy.url()).set("other", "value");
    assert_eq!(server.admin().keys("*"), ["other"]);
}

#[test]
fn a_refusing_proxy_keeps_its_open_connections() {
    let (_server, proxy) = server_and_proxy();
    let admin = Admin::connect(&proxy.url());
    proxy.refuse();
    let refused = TcpStream::connect(proxy.addr()).expect_err("nothing listens");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    admin.set("key", "value");
    proxy.accept();
    assert_eq!(Admin::connect(&proxy.url()).get("key").as_deref(), Some("value"));
}

#[test]
fn a_redirect_sends_later_connections_to_another_server() {
    let (server, proxy) = server_and_proxy();
    let other = Server::start();
    let early = Admin::connect(&proxy.url());
    proxy.redirect(&other);
    early.set("key", "first");
    Admin::connect(&proxy.url()).set("key", "other");
    assert_eq!(server.admin().get("key").as_deref(), Some("first"));
    assert_eq!(other.admin().get("key").as_deref(), Some("other"));
}

#[test]
fn a_proxy_that_turns_away_counts_the_connections() {
    let (_server, proxy) = server_and_proxy();
    let admin = Admin::connect(&proxy.url());
    proxy.turn_away();
    assert!(Client::open(proxy.url()).unwrap().get_connection().is_err());
    assert_eq!(proxy.accepted(), 2);
    admin.set("key", "value");
    proxy.accept();
    assert_eq!(Admin::connect(&proxy.url()).get("key").as_deref(), Some("value"));
}

#[test]
fn a_delay_works_in_both_directions_and_ends() {
    let (_server, proxy) = server_and_proxy();
    let admin = Admin::connect(&proxy.url());
    let delay = Duration::from_millis(60);
    proxy.delay(delay);
    let start = now();
    admin.set("key", "value");
    assert!(start.elapsed() >= 2 * delay, "{:?}", start.elapsed());
    // Longer than a reply is waited for.
    proxy.delay(Duration::from_secs(3_600));
    proxy.delay(Duration::ZERO);
    admin.set("key", "value");
}

#[expect(clippy::disallowed_methods, reason = "a delay is tested in real time")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn without_a_server_a_client_is_accepted_and_closed() {
    let (server, proxy) = server_and_proxy();
    server.kill();
    assert!(Client::open(proxy.url()).unwrap().get_connection().is_err());
    wait::until(LIMIT, || proxy.open() == 0);
    assert_eq!(proxy.accepted(), 1);
}

#[tokio::test]
#[should_panic(expected = "not within 20ms: 1 times SET")]
async fn a_wait_says_what_it_waited_for() {
    let (_server, proxy) = server_and_proxy();
    proxy.wait_for_command("SET", 1, Duration::from_millis(20)).await;
}

fn server_and_proxy() -> (Server, Proxy) {
    let server = Server::start();
    let proxy = Proxy::start(&server);
    (server, proxy)
}

fn connect(proxy: &Proxy) -> redis::Connection {
    Client::open(proxy.url()).unwrap().get_connection().unwrap()
}

async fn async_connection(proxy: &Proxy) -> redis::aio::MultiplexedConnection {
    let client = Client::open(proxy.url()).unwrap();
    let limits = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(LIMIT))
        .set_response_timeout(Some(LIMIT));
    client.get_multiplexed_async_connection_with_config(&limits).await.unwrap()
}

const LIMIT: Duration = Duration::from_secs(10);
