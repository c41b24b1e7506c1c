//! What a check says of servers, and that it leaves nothing there.

mod cluster_rights;
mod clusters;
mod rights;
mod sentinel_rights;
mod sentinels;

use std::collections::HashMap;
use std::time::Duration;

use lockable_runtime::check::{Code, Finding, Report, Severity};
use lockable_runtime::{Locker, LockerBuilder};
use lockable_tests::{Proxy, Server, ServerBuilder, Tls, clock, cluster, wait};

use crate::events;
use crate::support::{HELLO_3, LIMIT, LONG, ample, connect_ample, patient, server_and_proxy};
use crate::waiting::support::queued;
use tracing::Level;

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

/// The same, but for the settings, which a locker's first connection reads and no lock needs.
fn refused_to_locks(server: &Server, user: &str) -> Vec<String> {
    let mut refused = refused(server, user);
    refused.retain(|object| !["config|get", "info"].contains(&object.as_str()));
    refused
}

/// A server without a fault, as the harness starts none by itself.
fn sound() -> ServerBuilder {
    Server::builder().config("appendonly", "yes").config("appendfsync", "always")
}

/// With deadlines that only a check that hangs reaches.
async fn check(url: &str) -> Report {
    ample(url).connect_lazy().unwrap().check().await
}

/// The same with deadlines that a test can wait for.
async fn check_soon(url: &str) -> Report {
    awaited(url).connect_lazy().unwrap().check().await
}

/// Deadlines that a test waits for where a server gives no answer, while all others answer in time.
fn awaited(url: &str) -> LockerBuilder {
    patient(url).connect_deadline(AWAITED).command_deadline(AWAITED)
}

/// Each Sentinel has half of it.
const AWAITED: Duration = Duration::from_secs(4);

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

/// The findings of that kind: how bad, and at which server.
fn found(report: &Report, code: Code) -> Vec<(Severity, Option<String>)> {
    let of_code = report.findings().filter(|finding| finding.code() == code);
    let address = |finding: &Finding| finding.address().map(str::to_owned);
    of_code.map(|finding| (finding.severity(), address(finding))).collect()
}

/// A finding of each of these servers.
fn at_each<'a>(
    severity: Severity,
    servers: impl IntoIterator<Item = &'a Server>,
) -> Vec<(Severity, Option<String>)> {
    servers.into_iter().map(|server| (severity, Some(server.addr().to_string()))).collect()
}

/// The rules that the user misses, as the report has them.
fn missing(report: &Report) -> Vec<&str> {
    lacking(report).filter_map(Finding::subject).collect()
}

/// The same, and where.
fn missing_at(report: &Report) -> Vec<(&str, String)> {
    let at = |finding: &Finding| finding.address().expect("each has an address").to_owned();
    lacking(report).filter_map(|finding| Some((finding.subject()?, at(finding)))).collect()
}

fn lacking(report: &Report) -> impl Iterator<Item = &Finding> {
    report.findings().filter(|finding| finding.code() == Code::MissingRight)
}

/// A rule that is missed at each of these servers.
fn each_misses<'a, 'b>(
    servers: impl IntoIterator<Item = &'a Server>,
    rule: &'b str,
) -> Vec<(&'b str, String)> {
    servers.into_iter().map(|server| (rule, server.addr().to_string())).collect()
}

/// A call that waits for the lock of another process gets it.
async fn hands_off(url: &str, server: &Server) {
    let (locker, other) = (connect_ample(url).await, connect_ample(url).await);
    let guard = locker.lock("k").acquire().await.unwrap();
    let waiting = tokio::spawn(async move { other.lock("k").run(async {}).await });
    queued(server, 1).await;
    guard.release().await.unwrap();
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_sound_server_is_without_findings() {
    let server = sound().start();
    let report = tokio::spawn(async move { (check(&server.url()).await, server) }).await;
    let (report, server) = report.unwrap();
    assert_eq!(codes(&report), [], "{report}");
    assert!(report.is_ok() && report.worst().is_none());
    assert!(report.to_string().contains(&format!("locks on {}/0,", server.url())), "{report}");
    let name = report.server().unwrap();
    assert!(name.starts_with("redis ") || name.starts_with("valkey "), "{name}");
    assert!(report.clock_difference().unwrap() < LIMIT);
    let text = report.to_string();
    let first = format!(
        "locks on {}/0, prefix `disLock:`, namespace `lockable`: ok (errors: 0, warnings: 0, info: 0)",
        server.url()
    );
    assert_eq!(text.lines().next(), Some(first.as_str()));
    assert!(text.contains(name) && text.lines().count() == 2, "{text}");
}

#[tokio::test]
async fn settings_of_other_programs_are_reported_once() {
    events::listen();
    let server = sound().start();
    let locker = Locker::builder().shared_url(format!("{}?a_timeout=5&b=1", server.url()));
    let locker = locker.connect().await.unwrap();
    let report = locker.check().await;
    assert_eq!(codes(&report), [Code::SettingIgnored; 2], "{report}");
    let names: Vec<_> = report.findings().filter_map(Finding::subject).collect();
    assert_eq!(names, ["a_timeout", "b"]);
    assert!(report.is_ok() && !report.to_string().contains("=5"));
    assert_eq!(events::logged_with(Level::WARN, &["a_timeout, b"]), 1);
}

#[tokio::test]
async fn a_check_connects_as_its_locks_do() {
    let tls = Tls::generate();
    let server = sound().tls(&tls).unix_socket().start();
    let encrypted = ample(&server.tls_url()).root_certificate(tls.roots());
    for builder in [encrypted, ample(&server.unix_url())] {
        let report = builder.connect_lazy().unwrap().check().await;
        assert_eq!(codes(&report), [], "{report}");
    }
}

#[tokio::test]
async fn a_check_leaves_nothing_and_touches_no_foreign_data() {
    let server = sound().start();
    let locker = connect_ample(&server.url()).await;
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
    let locker = ample(&proxy.url()).connect_lazy().unwrap();
    let checking = tokio::spawn(async move { locker.check().await });
    proxy.wait_reply_held(LIMIT).await;
    checking.abort();
    assert!(checking.await.unwrap_err().is_cancelled());
    proxy.release_replies();
    let admin = server.admin();
    wait::until_async(LONG, async || proxy.accepted() == 3 && proxy.open() == 0).await;
    assert!(admin.command_calls("set") > 0 && admin.command_calls("rpush") > 0);
    assert_eq!(admin.keys("*"), Vec::<String>::new());
}

#[tokio::test]
async fn a_server_that_is_down_or_silent_is_found_in_time() {
    let (server, proxy) = server_and_proxy();
    proxy.hold_replies();
    let report = wait::ends(check_soon(&proxy.url())).await;
    assert_eq!(codes(&report), [Code::Unreachable], "{report}");
    server.kill();
    let report = wait::ends(check(&server.url())).await;
    assert_eq!(codes(&report), [Code::Unreachable], "{report}");
    assert!(!report.is_ok() && report.server().is_none());
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
    let report = check(&server.url()).await;
    assert_eq!(codes(&report), [Code::Refused], "{report}");
    assert!(only(&report, Code::Refused).advice().contains("password"), "{report}");
    let report = check(&server.url_with("", "right", 0)).await;
    assert!(report.is_ok(), "{report}");
    assert!(!shown(&report).contains("right@"), "{report:?}");
}

/// All that can be printed of a report.
fn shown(report: &Report) -> String {
    format!("{report} {report:?} {}", serde_json::to_string(report).unwrap())
}

#[tokio::test]
async fn each_setting_that_endangers_locks_is_found() {
    let cases = [
        ("maxmemory 100mb", Code::MemoryLimit, Severity::Info),
        ("maxmemory 100mb; maxmemory-policy volatile-ttl", Code::Eviction, Severity::Warning),
        ("maxmemory-policy allkeys-lru", Code::Eviction, Severity::Info),
        ("appendfsync everysec", Code::UnsyncedAppends, Severity::Info),
        ("appendfsync no", Code::UnsyncedAppends, Severity::Warning),
        ("appendonly no", Code::NotPersistent, Severity::Warning),
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
        assert!(report.is_ok() && report.worst() == Some(severity), "{report}");
        let finding = only(&report, code);
        let rises = finding.message().contains("fencing tokens still rise");
        assert_eq!(rises, code == Code::NotPersistent, "{report}");
        assert!(report.to_string().contains(finding.subject().unwrap()), "{report}");
    }
}

#[tokio::test]
async fn what_keeps_locks_from_working_is_an_error_that_names_it() {
    let cases = [
        ("maxmemory", "1", "acquiring a lock"),
        ("rename-command", "eval \"\"", "eval"),
        ("rename-command", "lpos \"\"", "lpos"),
    ];
    for (setting, value, subject) in cases {
        let server = sound().config(setting, value).start();
        let report = check(&server.url()).await;
        let finding = only(&report, Code::OperationFailed);
        assert_eq!((finding.subject(), report.is_ok()), (Some(subject), false), "{report}");
        let is_full = finding.message().contains("OOM") && finding.advice().contains("maxmemory");
        assert_eq!(is_full, setting == "maxmemory", "{report}");
    }
}

#[tokio::test]
async fn a_server_that_counts_no_subscribers_makes_calls_poll() {
    let server = sound().config("rename-command", "pubsub \"\"").start();
    let report = check(&server.url()).await;
    assert_eq!(codes(&report), [Code::GrantNotReceived], "{report}");
    let finding = only(&report, Code::GrantNotReceived);
    assert!(report.is_ok() && finding.message().contains("poll"), "{report}");
    assert!(finding.advice().contains("PUBSUB NUMSUB"), "{report}");
}

/// Goal: a proxy that speaks RESP2 alone is no reason to have no locks, and no surprise.
#[tokio::test]
async fn a_proxy_without_resp3_makes_calls_poll() {
    let server = sound().start();
    let proxy = Proxy::start(&server);
    proxy.misspell(Some(HELLO_3));
    let report = check(&proxy.url()).await;
    assert!(report.is_ok(), "{report}");
    let finding = only(&report, Code::GrantNotReceived);
    assert!(["poll", "RESP3"].iter().all(|word| finding.message().contains(word)), "{report}");
}

#[tokio::test]
async fn a_clock_that_differs_is_noted() {
    if !clock::can_be_set() {
        return;
    }
    let server = sound().clock().start();
    server.set_clock_back(Duration::from_secs(7_200));
    let report = check(&server.url()).await;
    let finding = only(&report, Code::ClockDiffers);
    assert!(finding.severity() == Severity::Info && report.is_ok(), "{report}");
    assert!(report.clock_difference() > Some(Duration::from_secs(7_000)), "{report}");
}

#[tokio::test]
async fn unconfirmed_replicas_warn_and_a_replica_is_an_error() {
    let (primary, replica, other) = (sound().start(), sound().start(), sound().start());
    replica.admin().follow(primary.addr());
    let report = check(&primary.url()).await;
    assert_eq!(codes(&report), [Code::UnconfirmedReplication], "{report}");
    let advice = only(&report, Code::UnconfirmedReplication).advice();
    assert!(advice.contains("second replica"), "{report}");
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

/// What it refuses shows that it is one, or a proxy in front of several; but not with a prefix that puts all locks
/// into one slot.
#[tokio::test]
async fn the_only_node_of_a_cluster_is_a_warning() {
    let server = cluster::start(&sound(), 1).remove(0);
    let report = check(&server.url()).await;
    assert_eq!(codes(&report), [Code::Cluster, Code::CrossSlotRefused], "{report}");
    assert_eq!(only(&report, Code::Cluster).severity(), Severity::Warning);
    assert_eq!(only(&report, Code::CrossSlotRefused).severity(), Severity::Info);
    let tagged = ample(&server.url()).prefix("{disLock}:").connect_lazy().unwrap();
    let report = tagged.check().await;
    assert_eq!(codes(&report), [Code::Cluster], "{report}");
    server.admin().command::<()>(&["CLUSTER", "FLUSHSLOTS"]);
    let report = check(&server.url()).await;
    assert!(only(&report, Code::OperationFailed).message().contains("CLUSTERDOWN"), "{report}");
}

#[tokio::test]
async fn one_node_of_several_and_a_sentinel_are_errors() {
    let shards = cluster::start(&sound(), 2);
    let sentinel = Server::builder().sentinel().start();
    for (server, code) in [(&shards[0], Code::Cluster), (&sentinel, Code::Sentinel)] {
        let report = check(&server.url()).await;
        assert_eq!(codes(&report), [code], "{report}");
        assert_eq!(only(&report, code).severity(), Severity::Error, "{report}");
        let error = ample(&server.url()).connect().await.unwrap_err().to_string();
        assert!(error.contains(only(&report, code).message()), "{error}");
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

#[tokio::test]
async fn a_subscription_that_is_not_confirmed_makes_calls_poll() {
    let server = sound().start();
    let proxy = Proxy::start(&server);
    proxy.hold_messages();
    let report = check_soon(&proxy.url()).await;
    assert_eq!(codes(&report), [Code::GrantNotReceived, Code::Proxy], "{report}");
    let finding = only(&report, Code::GrantNotReceived);
    assert!(report.is_ok() && finding.message().contains("poll"), "{report}");
}

/// Goal: an address that leads to several servers does not pass for one.
/// Method: the commands go to one, and the subscription, which is opened later, to another.
#[tokio::test]
async fn a_grant_does_not_arrive_from_another_server() {
    let (server, other) = (sound().start(), sound().start());
    let proxy = Proxy::start(&server);
    proxy.hold_replies();
    let url = proxy.url();
    let checking = tokio::spawn(async move { check_soon(&url).await });
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
        let locker = ample(&url).prefix("shop{}:").connect_lazy().unwrap();
        let report = locker.check().await;
        assert_eq!(only(&report, Code::InvalidPrefix).severity(), Severity::Error, "{report}");
    }
}

#[tokio::test]
async fn locks_in_memory_are_those_of_one_process() {
    let report = Locker::connect("memory://").await.unwrap().check().await;
    assert_eq!(codes(&report), [Code::OneProcess]);
    assert!(report.is_ok() && report.worst() == Some(Severity::Info));
    assert!(report.to_string().contains("locks on memory://,"), "{report}");
}
