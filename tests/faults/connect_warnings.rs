//! The first connection of a process to a server warns of settings that endanger locks, in the words of the check.

use std::iter;
use std::net::SocketAddr;

use lockable_runtime::LockerBuilder;
use lockable_runtime::check::Severity;
use lockable_tests::{Cluster, ConnectionTraffic, Proxy, Sentinels, Server, ServerBuilder, wait};
use rstest::rstest;
use tracing::Level;

use crate::events;
use crate::support::{LIMIT, LONG, acl_line, ample, set_user};

/// A server of which nothing is to be said.
fn sound() -> ServerBuilder {
    Server::builder().config("appendonly", "yes").config("appendfsync", "always")
}

/// A primary with this number of replicas.
fn replicated(replicas: usize, least: &str) -> Vec<Server> {
    let primary = sound().config("min-replicas-to-write", least).start();
    let replicas: Vec<_> = (0..replicas).map(|_| sound().start()).collect();
    for replica in &replicas {
        replica.admin().follow(primary.addr());
    }
    wait_for_replicas(&primary, replicas.len(), least);
    iter::once(primary).chain(replicas).collect()
}

/// A primary that needs replicas to write says how many of them count.
fn wait_for_replicas(primary: &Server, count: usize, least: &str) {
    let name = if least == "0" { "connected_slaves" } else { "min_slaves_good_slaves" };
    let line = format!("{name}:{count}");
    wait::until(LIMIT, || primary.admin().info("replication").contains(&line));
}

/// How many such warnings there were about a server with these words too.
fn warnings(server: SocketAddr, words: &[&str]) -> usize {
    let server = server.to_string();
    events::logged_with(Level::WARN, &[&[server.as_str(), "code="], words].concat())
}

/// Connects to a server for the first time, a second time, and again when the connection broke.
///
/// There is one event for each warning of the check, which are these.
async fn warns_once(server: &Server, locker: impl Fn() -> LockerBuilder, codes: &[&str]) {
    events::listen();
    let [first, second] = [locker().connect().await.unwrap(), locker().connect().await.unwrap()];
    // In a cluster only the first use of a lock connects to its node.
    first.inspect("k").await.unwrap();
    server.admin().command::<()>(&["CLIENT", "KILL", "TYPE", "normal"]);
    for locker in [&first, &second] {
        locker.inspect("k").await.unwrap();
    }
    let report = first.check().await;
    let found = report.findings().filter(|finding| finding.severity() == Severity::Warning);
    let found: Vec<_> = found.collect();
    let all: Vec<_> = found.iter().map(|finding| finding.code().as_str()).collect();
    assert_eq!(all, codes, "{report}");
    for finding in found {
        let (code, advice) = (finding.code().as_str(), finding.advice());
        let words = [format!("code={code:?}"), format!("advice={advice:?}")];
        let words = [&words[0], &words[1], finding.message()];
        assert_eq!(warnings(server.addr(), &words), 1, "{finding}");
    }
    assert_eq!(warnings(server.addr(), &[]), codes.len(), "{report}");
}

#[rstest]
#[case(&[], &[])]
#[case(&[("maxmemory", "100mb"), ("maxmemory-policy", "volatile-ttl")], &["eviction"])]
#[case(&[("maxmemory-policy", "allkeys-lru")], &[])]
#[case(&[("maxmemory", "100mb")], &[])]
#[case(&[("appendfsync", "everysec")], &[])]
#[case(&[("appendfsync", "no")], &["unsynced-appends"])]
#[case(&[("appendonly", "no")], &["not-persistent"])]
#[tokio::test]
async fn a_setting_is_warned_of_once_as_the_check_does(
    #[case] settings: &[(&str, &str)],
    #[case] codes: &[&str],
) {
    let server = sound().start();
    for (name, value) in settings {
        server.admin().command::<()>(&["CONFIG", "SET", name, value]);
    }
    warns_once(&server, || ample(&server.url()), codes).await;
}

#[rstest]
#[case::none_is_needed(2, "0", 0, &["unconfirmed-replication"])]
#[case::one_is_needed(2, "1", 0, &[])]
#[case::all_are_needed(1, "1", 0, &["few-replicas"])]
#[case::a_locker_waits_for_some(2, "0", 1, &["unconfirmed-replication"])]
#[case::a_locker_waits_for_all(1, "0", 1, &[])]
#[case::a_locker_waits_for_more(1, "0", 2, &["few-replicas"])]
#[tokio::test]
async fn replicas_are_warned_of_once_as_the_check_does(
    #[case] replicas: usize,
    #[case] least: &str,
    #[case] confirming: u8,
    #[case] codes: &[&str],
) {
    let servers = replicated(replicas, least);
    let locker = || ample(&servers[0].url()).replicas(confirming);
    warns_once(&servers[0], locker, codes).await;
}

#[rstest]
#[case(0, "0", &["no-replica"])]
#[case(2, "0", &["unconfirmed-replication"])]
#[case(2, "2", &["few-replicas"])]
#[case(2, "1", &[])]
#[tokio::test]
async fn a_primary_behind_sentinels_is_warned_of_once(
    #[case] replicas: usize,
    #[case] least: &str,
    #[case] codes: &[&str],
) {
    let group = Sentinels::builder().down_after(LONG).replicas(replicas);
    let group = group.server_config("appendonly", "yes").server_config("appendfsync", "always");
    let group = group.server_config("min-replicas-to-write", least).start();
    wait_for_replicas(group.primary(), replicas, least);
    warns_once(group.primary(), || ample(&group.url()), codes).await;
}

#[rstest]
#[case(0, &["no-replica"])]
#[case(1, &["unconfirmed-replication"])]
#[tokio::test]
async fn a_node_of_a_cluster_is_warned_of_once(#[case] replicas: usize, #[case] codes: &[&str]) {
    let cluster = Cluster::builder().servers(sound()).shards(1).replicas(replicas).steady().start();
    let master = cluster.first_masters().next().unwrap();
    wait_for_replicas(master, replicas, "0");
    warns_once(master, || ample(&cluster.url()), codes).await;
}

#[tokio::test]
async fn what_a_user_may_not_read_is_not_warned_of() {
    events::listen();
    let server = Server::start();
    set_user([&server], acl_line(), "app", &[]);
    let locker = ample(&server.url_with("app", "secret", 0)).connect().await.unwrap();
    locker.lock("k").run(async {}).await.unwrap();
    assert_eq!(warnings(server.addr(), &[]), 0);
}

/// The first connection alone reads the settings.
#[tokio::test]
async fn reading_the_settings_costs_no_round_trip() {
    let server = Server::start();
    let proxy = Proxy::start(&server);
    for number in 0..3 {
        let _locker = ample(&proxy.url()).connect().await.unwrap();
        let first = proxy.connection(0, ConnectionTraffic::round_trips);
        assert_eq!(proxy.connection(number, ConnectionTraffic::round_trips), first);
        assert_eq!((proxy.commands("CONFIG"), proxy.commands("INFO")), (1, 1));
    }
}
