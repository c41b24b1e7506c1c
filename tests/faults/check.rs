//! What a check says of servers, and that it leaves nothing there.

mod cluster_rights;
mod clusters;
mod rights;
mod sentinel_rights;
mod sentinels;

use std::collections::HashMap;
use std::time::Duration;

use lockable_runtime::Locker;
use lockable_runtime::check::{Code, Finding, Report, Severity};
use lockable_tests::{Proxy, Server, ServerBuilder, Tls, cluster, wait};

use crate::support::{
    COMMAND, CONNECT, LIMIT, connect, impatient, in_time, patient, server_and_proxy,
};

/// What the server's `ACL LOG` says that the user may not do: a command, or a channel.
fn refused(server: &Server, user: &str) -> Vec<String> {
    let log = server.admin().command::<Vec<HashMap<String, redis::Value>>>(&["ACL", "LOG"]);
    let field = |entry: &HashMap<_, _>, name| {
        redis::from_redis_value_ref::<String>(&entry[name]).unwrap_or_default()
    };
    let of_user = log.iter().filter(|entry| field(entry, "username") == user);
    let objects = of_user.map(|entry| field(entry, "object"));
    // The client library names itself, as far as it may.
    objects.filter(|object| object != "client|setinfo").collect()
}

/// A server without a fault, as the harness starts none by itself.
fn sound() -> ServerBuilder {
    Server::builder().config("appendonly", "yes").config("appendfsync", "always")
}

async fn check(url: &str) -> Report {
    let builder = patient(url).connect_deadline(LIMIT).command_deadline(LIMIT);
    builder.connect_lazy().unwrap().check().await
}

/// The same with deadlines that a test can wait for.
async fn check_soon(url: &str) -> Report {
    impatient(url).connect_lazy().unwrap().check().await
}

fn codes(report: &Report) -> Vec<Code> {
    report.findings().map(Finding::code).collect()
}

/// The finding of that kind, which must be there once.
fn only(report: &Report, code: Code) -> &Finding {
    let mut found = report.findings().filter(|finding| finding.code() == code);
    let first = found.next().unwrap_or_else(|| panic!("no {code} in {report}"));
    assert!(found.next().is_none(), "{report}");
    first
}

#[tokio::test]
async fn a_sound_server_is_without_findings() {
    let server = sound().start();
    let report = tokio::spawn(async move { (check(&server.url()).await, server) }).await;
    let (report, server) = report.unwrap();
    assert_eq!(codes(&report), [], "{report}");
    assert!(report.is_ok() && report.worst().is_none());
    assert_eq!(report.backend(), format!("{}/0", server.url()));
    let name = report.server().unwrap();
    assert!(name.starts_with("redis ") || name.starts_with("valkey "), "{name}");
    assert!(report.clock_difference().unwrap() < Duration::from_secs(1));
    let text = report.to_string();
    let first = format!("locks on {}/0: ok (errors: 0, warnings: 0, info: 0)", server.url());
    assert_eq!(text.lines().next(), Some(first.as_str()));
    assert!(text.contains(name) && text.lines().count() == 2, "{text}");
}

#[tokio::test]
async fn a_check_connects_as_its_locks_do() {
    let tls = Tls::generate();
    let server = sound().tls(&tls).unix_socket().start();
    let encrypted = patient(&server.tls_url()).root_certificate(tls.ca_pem());
    for builder in [encrypted, patient(&server.unix_url())] {
        let report = builder.connect_lazy().unwrap().check().await;
        assert_eq!(codes(&report), [], "{report}");
    }
}

#[tokio::test]
async fn a_check_leaves_nothing_and_touches_no_foreign_data() {
    let server = sound().start();
    let locker = connect(&server.url()).await;
    let guard = locker.lock("k").acquire().await.unwrap();
    let admin = server.admin();
    let before = admin.keys("*");
    assert!(locker.check().await.is_ok());
    assert_eq!(admin.keys("*"), before);
    guard.release().await.unwrap();
}

/// Goal: a caller who goes away midway leaves no key and no connection.
/// Method: the first answer is held back until the caller has gone, so all of the check comes after.
#[tokio::test]
async fn a_check_that_is_dropped_continues_and_cleans_up() {
    let server = sound().start();
    let proxy = Proxy::start(&server);
    proxy.hold_replies();
    let locker = patient(&proxy.url()).connect_lazy().unwrap();
    let checking = tokio::spawn(async move { locker.check().await });
    proxy.wait_reply_held(LIMIT).await;
    checking.abort();
    assert!(checking.await.unwrap_err().is_cancelled());
    proxy.release_replies();
    let admin = server.admin();
    wait::until_async(LIMIT, async || proxy.accepted() == 3 && proxy.open() == 0).await;
    assert!(admin.command_calls("set") > 0 && admin.command_calls("rpush") > 0);
    assert_eq!(admin.keys("*"), Vec::<String>::new());
}

#[tokio::test]
async fn a_server_that_is_down_is_found() {
    let server = Server::start();
    server.kill();
    let report = in_time(CONNECT, check_soon(&server.url())).await;
    assert_eq!(codes(&report), [Code::Unreachable], "{report}");
    assert!(!report.is_ok() && report.server().is_none());
}

#[tokio::test]
async fn a_silent_server_is_found_in_time() {
    let (_server, proxy) = server_and_proxy();
    proxy.hold_replies();
    let report = in_time(CONNECT + COMMAND, check_soon(&proxy.url())).await;
    assert_eq!(codes(&report), [Code::Unreachable], "{report}");
}

#[tokio::test]
async fn a_wrong_password_is_found_and_not_shown() {
    const PASSWORD: &str = "s3cr3t-w0rd";
    let server = Server::builder().password("right").start();
    let report = check(&server.url_with("", PASSWORD, 0)).await;
    assert_eq!(codes(&report), [Code::Refused], "{report}");
    let finding = only(&report, Code::Refused);
    assert!(finding.advice().contains("password"), "{report}");
    assert!(!shown(&report).contains(PASSWORD), "{report:?}");
    let report = check(&server.url_with("", "right", 0)).await;
    assert!(report.is_ok(), "{report}");
    assert!(!shown(&report).contains("right@"), "{report:?}");
}

/// All that can be printed of a report.
fn shown(report: &Report) -> String {
    format!("{report} {report:?} {}", serde_json::to_string(report).unwrap())
}

#[tokio::test]
async fn a_server_without_persistence_is_a_warning() {
    let report = check(&Server::start().url()).await;
    let finding = only(&report, Code::NotPersistent);
    assert_eq!(finding.severity(), Severity::Warning);
    assert!(finding.message().contains("fencing tokens still rise"), "{report}");
    assert!(report.is_ok() && report.worst() == Some(Severity::Warning));
}

#[tokio::test]
async fn each_setting_that_endangers_locks_is_found() {
    let cases = [
        ("maxmemory 100mb", Code::MemoryLimit, Severity::Info),
        ("maxmemory 100mb; maxmemory-policy volatile-ttl", Code::Eviction, Severity::Warning),
        ("maxmemory-policy allkeys-lru", Code::Eviction, Severity::Info),
        ("appendfsync everysec", Code::UnsyncedAppends, Severity::Info),
        ("appendfsync no", Code::UnsyncedAppends, Severity::Warning),
        ("appendonly no; save 3600 1", Code::NotPersistent, Severity::Warning),
    ];
    for (settings, code, severity) in cases {
        let server = sound().start();
        let admin = server.admin();
        for (name, value) in settings.split("; ").filter_map(|setting| setting.split_once(' ')) {
            admin.command::<()>(&["CONFIG", "SET", name, value]);
        }
        let report = check(&server.url()).await;
        assert_eq!(codes(&report), [code], "{settings}: {report}");
        assert_eq!(only(&report, code).severity(), severity, "{report}");
        let subject = only(&report, code).subject().unwrap();
        assert!(report.to_string().contains(subject), "{report}");
    }
}

#[tokio::test]
async fn a_full_server_is_an_error_with_its_reason() {
    let server = sound().config("maxmemory", "1").start();
    let report = check(&server.url()).await;
    let finding = only(&report, Code::OperationFailed);
    assert_eq!(finding.subject(), Some("acquiring a lock"));
    assert!(
        finding.message().contains("OOM") && finding.advice().contains("maxmemory"),
        "{report}"
    );
    assert!(!report.is_ok());
}

#[tokio::test]
async fn unconfirmed_replicas_warn_and_a_replica_is_an_error() {
    let (primary, replica, other) = (sound().start(), sound().start(), sound().start());
    replica.admin().follow(primary.addr());
    let report = check(&primary.url()).await;
    assert_eq!(codes(&report), [Code::UnconfirmedReplication], "{report}");
    let admin = primary.admin();
    admin.command::<()>(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    let good = async |count: u64| {
        let line = format!("min_slaves_good_slaves:{count}");
        wait::until_async(LIMIT, async || admin.info("replication").contains(&line)).await;
    };
    good(1).await;
    let report = check(&primary.url()).await;
    assert_eq!(codes(&report), [Code::FewReplicas], "{report}");
    other.admin().follow(primary.addr());
    good(2).await;
    let report = check(&primary.url()).await;
    assert_eq!(codes(&report), [], "{report}");
    let report = check(&replica.url()).await;
    assert_eq!(codes(&report), [Code::Replica], "{report}");
    assert!(only(&report, Code::Replica).advice().contains(&primary.url()), "{report}");
}

#[tokio::test]
async fn a_node_of_a_cluster_is_a_warning() {
    let server = sound().config("cluster-enabled", "yes").start();
    let report = check(&server.url()).await;
    assert_eq!(only(&report, Code::Cluster).severity(), Severity::Warning);
    // It has no slots yet.
    assert!(only(&report, Code::OperationFailed).message().contains("CLUSTERDOWN"), "{report}");
    let shard = cluster::start(&sound(), 1).remove(0);
    assert_eq!(codes(&check(&shard.url()).await), [Code::Cluster, Code::CrossSlotRefused]);
}

#[tokio::test]
async fn one_node_of_several_and_a_sentinel_are_errors() {
    let shards = cluster::start(&sound(), 2);
    let sentinel = Server::builder().sentinel().start();
    for (server, code) in [(&shards[0], Code::Cluster), (&sentinel, Code::Sentinel)] {
        let report = check(&server.url()).await;
        assert_eq!(codes(&report), [code], "{report}");
        assert_eq!(only(&report, code).severity(), Severity::Error, "{report}");
        let error = Locker::connect(&server.url()).await.unwrap_err().to_string();
        assert!(error.contains(only(&report, code).message()), "{error}");
    }
}

#[tokio::test]
async fn a_missing_command_is_an_error_that_names_it() {
    for command in ["eval", "evalsha", "lpos"] {
        let name = format!("{command} \"\"");
        let server = sound().config("rename-command", &name).start();
        let report = check(&server.url()).await;
        assert_eq!(codes(&report), [Code::OperationFailed], "{report}");
        assert_eq!(only(&report, Code::OperationFailed).subject(), Some(command), "{report}");
    }
}

#[tokio::test]
async fn a_proxy_is_found() {
    let server = sound().start();
    let proxy = Proxy::start(&server);
    let report = check(&proxy.url()).await;
    assert_eq!(codes(&report), [Code::Proxy], "{report}");
    let finding = only(&report, Code::Proxy);
    assert_eq!(finding.severity(), Severity::Info);
    assert!(finding.message().contains(&server.addr().to_string()), "{report}");
}

/// Goal: a cluster of one shard, or a proxy in front of several, is known by what it refuses.
/// Method: the same cluster is asked with a prefix that puts all locks into one slot.
#[tokio::test]
async fn a_server_that_refuses_several_slots_is_found() {
    let server = cluster::start(&sound(), 1).remove(0);
    let report = check(&server.url()).await;
    assert_eq!(only(&report, Code::CrossSlotRefused).severity(), Severity::Info);
    assert!(!codes(&report).contains(&Code::OperationFailed) && report.is_ok(), "{report}");
    let tagged = patient(&server.url()).prefix("{disLock}:").connect_lazy().unwrap();
    let report = tagged.check().await;
    assert!(!codes(&report).contains(&Code::CrossSlotRefused) && report.is_ok(), "{report}");
}

#[tokio::test]
async fn a_subscription_that_receives_nothing_is_an_error() {
    let server = sound().start();
    let proxy = Proxy::start(&server);
    proxy.hold_messages();
    let report = check_soon(&proxy.url()).await;
    assert_eq!(codes(&report), [Code::GrantNotReceived, Code::Proxy], "{report}");
    assert!(!report.is_ok());
}

/// Goal: an address that leads to several servers does not pass for one.
/// Method: the commands go to one, and the subscription, which is opened later, to another.
#[tokio::test]
async fn a_grant_does_not_arrive_from_another_server() {
    let (server, other) = (sound().start(), sound().start());
    let proxy = Proxy::start(&server);
    proxy.hold_replies();
    let url = proxy.url();
    let checking = tokio::spawn(async move { check(&url).await });
    proxy.wait_reply_held(LIMIT).await;
    proxy.redirect(&other);
    proxy.release_replies();
    let report = checking.await.unwrap();
    assert_eq!(codes(&report), [Code::GrantNotReceived, Code::Proxy], "{report}");
    assert!(only(&report, Code::GrantNotReceived).message().contains("published"), "{report}");
    let proxy = only(&report, Code::Proxy);
    assert_eq!(proxy.severity(), Severity::Error);
    assert!(proxy.message().contains("two servers"), "{report}");
}

#[tokio::test]
async fn an_impossible_prefix_is_an_error() {
    let server = sound().start();
    for url in [server.url(), "memory://".to_owned()] {
        let locker = patient(&url).prefix("shop{}:").connect_lazy().unwrap();
        let report = locker.check().await;
        assert_eq!(only(&report, Code::InvalidPrefix).severity(), Severity::Error, "{report}");
    }
}

#[tokio::test]
async fn locks_in_memory_are_those_of_one_process() {
    let report = Locker::connect("memory://").await.unwrap().check().await;
    assert_eq!(codes(&report), [Code::OneProcess]);
    assert!(report.is_ok() && report.worst() == Some(Severity::Info));
    assert_eq!(report.backend(), "memory://");
}
