//! What a check says of Sentinels, and of the primary that they name.

use lockable_runtime::LockError;
use lockable_runtime::check::{Code, Finding, Report, Severity};
use lockable_tests::{Sentinels, SentinelsBuilder, Server, Tls};

use super::{check, check_soon, codes, only, shown, sound};
use crate::support::{COMMAND, CONNECT, impatient, in_time, patient};

/// A group without a fault.
fn sound_group() -> SentinelsBuilder {
    let group = Sentinels::builder().server_config("appendonly", "yes");
    group.server_config("appendfsync", "always").server_config("min-replicas-to-write", "1")
}

/// A Sentinel of its own, for the server at that address.
fn sentinel_of(host: &str, port: u16) -> Server {
    let line = format!("monitor {} {host} {port} 1", Sentinels::NAME);
    Server::builder().sentinel().config("sentinel", &line).start()
}

fn url(sentinels: &[&Server]) -> String {
    let hosts: Vec<_> = sentinels.iter().map(|sentinel| sentinel.addr().to_string()).collect();
    format!("redis-sentinel://{}/{}", hosts.join(","), Sentinels::NAME)
}

/// The findings of that kind: how bad, and at which server.
fn found(report: &Report, code: Code) -> Vec<(Severity, Option<String>)> {
    let of_code = report.findings().filter(|finding| finding.code() == code);
    let address = |finding: &Finding| finding.address().map(str::to_owned);
    of_code.map(|finding| (finding.severity(), address(finding))).collect()
}

fn warning_at(server: &Server) -> (Severity, Option<String>) {
    (Severity::Warning, Some(server.addr().to_string()))
}

#[tokio::test]
async fn a_sound_group_is_without_findings() {
    let group = sound_group().start();
    let report = check(&group.url()).await;
    assert_eq!(codes(&report), [], "{report}");
    let primary = group.primary().addr().to_string();
    assert_eq!(report.address(), Some(primary.as_str()));
    assert_eq!(report.backend(), format!("{}/0", group.url()));
    assert!(report.server().is_some() && report.clock_difference().is_some(), "{report}");
    assert!(report.to_string().contains(&format!("the primary is {primary}")), "{report}");
}

#[tokio::test]
async fn a_group_over_tls_is_examined_too() {
    let tls = Tls::generate();
    let group = sound_group().tls(&tls).start();
    let builder = patient(&group.url()).root_certificate(tls.ca_pem());
    let report = builder.connect_lazy().unwrap().check().await;
    assert_eq!(codes(&report), [], "{report}");
    let report = check(&group.url()).await;
    assert_eq!(found(&report, Code::Refused).len(), 3, "{report}");
    assert!(report.to_string().contains("`LockerBuilder::root_certificate`"), "{report}");
}

#[tokio::test]
async fn what_endangers_locks_is_found_at_the_primary() {
    let group = Sentinels::start();
    let report = check(&group.url()).await;
    assert_eq!(codes(&report), [Code::NotPersistent, Code::UnconfirmedReplication], "{report}");
    assert_eq!(found(&report, Code::NotPersistent), [warning_at(group.primary())]);
    let primary = group.primary().addr().to_string();
    assert!(report.to_string().contains(&format!("[not-persistent] at {primary}: ")), "{report}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["address"], primary.as_str());
    assert_eq!(json["findings"][0]["address"], primary.as_str());
}

/// Goal: Sentinels that fail hide nothing of the primary.
/// Method: one does not exist, and then another does not answer.
#[tokio::test]
async fn some_silent_sentinels_are_warnings() {
    let group = sound_group().start();
    let [first, second, _] = group.sentinels() else { panic!("three Sentinels") };
    first.kill();
    let report = check(&group.url()).await;
    assert_eq!(codes(&report), [Code::SentinelSilent], "{report}");
    assert_eq!(found(&report, Code::SentinelSilent), [warning_at(first)]);
    assert!(only(&report, Code::SentinelSilent).message().contains("refused"), "{report}");
    second.pause();
    let report = in_time(2 * CONNECT + COMMAND, check_soon(&group.url())).await;
    second.resume();
    assert_eq!(found(&report, Code::SentinelSilent), [warning_at(first), warning_at(second)]);
    assert!(report.is_ok() && report.address().is_some(), "{report}");
}

#[tokio::test]
async fn all_silent_sentinels_are_errors() {
    let sentinels = [sentinel_of("127.0.0.1", 1), sentinel_of("127.0.0.1", 1)];
    let url = url(&sentinels.each_ref());
    sentinels.iter().for_each(Server::kill);
    let report = in_time(2 * CONNECT, check_soon(&url)).await;
    let at = |server: &Server| (Severity::Error, Some(server.addr().to_string()));
    assert_eq!(found(&report, Code::SentinelSilent), sentinels.each_ref().map(at), "{report}");
    assert_eq!(found(&report, Code::Unreachable), [(Severity::Error, None)], "{report}");
    assert_eq!(report.address(), None);
}

#[tokio::test]
async fn a_name_that_no_sentinel_has_is_an_error() {
    let sentinel = sentinel_of("127.0.0.1", 1);
    let report = check(&url(&[&sentinel]).replace("/mm", "/nn")).await;
    assert_eq!(found(&report, Code::UnknownPrimary), [(Severity::Error, None)], "{report}");
    let message = only(&report, Code::UnknownPrimary).message();
    assert!(message.contains("\"nn\"") && message.ends_with("but mm"), "{report}");
}

#[tokio::test]
async fn a_sentinel_that_lacks_the_name_is_a_warning() {
    let group = sound_group().start();
    let other = &group.sentinels()[1];
    other.admin().command::<()>(&["SENTINEL", "REMOVE", Sentinels::NAME]);
    let report = check(&group.url()).await;
    assert_eq!(codes(&report), [Code::UnknownPrimary], "{report}");
    assert_eq!(found(&report, Code::UnknownPrimary), [warning_at(other)]);
}

#[tokio::test]
async fn sentinels_that_disagree_are_an_error() {
    let (primary, other) = (sound().start(), sound().start());
    let of = |server: &Server| sentinel_of("127.0.0.1", server.addr().port());
    let sentinels = [of(&primary), of(&primary), of(&other)];
    let report = check(&url(&sentinels.each_ref())).await;
    assert_eq!(found(&report, Code::SentinelsDisagree), [(Severity::Error, None)], "{report}");
    let message = only(&report, Code::SentinelsDisagree).message();
    for address in sentinels.iter().chain([&primary, &other]).map(Server::addr) {
        assert!(message.contains(&address.to_string()), "{report}");
    }
    assert_eq!(report.address(), Some(primary.addr().to_string().as_str()), "the most named");
}

#[tokio::test]
async fn fewer_than_three_sentinels_are_a_warning() {
    let server = sound().start();
    let sentinel = sentinel_of("127.0.0.1", server.addr().port());
    let report = check(&url(&[&sentinel])).await;
    assert_eq!(found(&report, Code::FewSentinels), [(Severity::Warning, None)], "{report}");
    let group = sound_group().start();
    let report = check(&url(&[&group.sentinels()[0]])).await;
    assert_eq!(codes(&report), [Code::FewSentinels], "{report}");
    assert!(only(&report, Code::FewSentinels).message().contains("1 of 3"), "{report}");
}

#[tokio::test]
async fn a_quorum_of_all_sentinels_is_a_warning() {
    let group = sound_group().start();
    for sentinel in group.sentinels() {
        sentinel.admin().command::<()>(&["SENTINEL", "SET", Sentinels::NAME, "quorum", "3"]);
    }
    let report = check(&group.url()).await;
    assert_eq!(codes(&report), [Code::FewSentinels], "{report}");
    let finding = only(&report, Code::FewSentinels);
    assert_eq!(finding.subject(), Some("quorum"));
    assert!(finding.advice().contains("SENTINEL SET mm quorum 2"), "{report}");
}

#[tokio::test]
async fn a_primary_without_a_replica_is_a_warning() {
    let group = sound_group().replicas(0).server_config("min-replicas-to-write", "0").start();
    let report = check(&group.url()).await;
    assert_eq!(codes(&report), [Code::NoReplica], "{report}");
    assert_eq!(found(&report, Code::NoReplica), [warning_at(group.primary())]);
}

#[tokio::test]
async fn a_primary_that_needs_all_replicas_is_a_warning() {
    let group = sound_group().server_config("min-replicas-to-write", "2").start();
    let report = check(&group.url()).await;
    assert_eq!(codes(&report), [Code::FewReplicas], "{report}");
    assert_eq!(only(&report, Code::FewReplicas).subject(), Some("min-replicas-to-write"));
}

#[tokio::test]
async fn a_server_among_the_sentinels_is_a_warning() {
    let group = sound_group().start();
    let server = group.primary();
    let [first, second, _] = group.sentinels() else { panic!("three Sentinels") };
    let report = check(&url(&[first, server, second])).await;
    assert_eq!(codes(&report), [Code::NotASentinel], "{report}");
    assert_eq!(found(&report, Code::NotASentinel), [warning_at(server)]);
    let advice = only(&report, Code::NotASentinel).advice();
    assert!(advice.contains(&server.url()), "{report}");
}

/// Goal: behind a translation of addresses, Sentinels name one that leads nowhere from here.
/// Method: nothing listens at the address that they name.
#[tokio::test]
async fn an_address_that_leads_nowhere_is_an_error() {
    let sentinel = sentinel_of("127.0.0.1", 1);
    let url = url(&[&sentinel]);
    let report = check(&url).await;
    let finding = only(&report, Code::Unreachable);
    assert_eq!(finding.address(), Some("127.0.0.1:1"), "{report}");
    assert!(finding.advice().contains("`replica-announce-ip`"), "{report}");
    let error = in_time(CONNECT, impatient(&url).connect()).await.unwrap_err();
    assert_unreached(&error, "127.0.0.1:1");
}

fn assert_unreached(error: &LockError, address: &str) {
    let text = error.to_string();
    assert!(error.is_unavailable() && !error.is_refused(), "{error:?}");
    let words = [&format!("({address})"), "replica-announce-ip", "sentinel announce-ip"];
    assert!(words.iter().all(|words| text.contains(words)), "{text}");
}

/// The same where nothing answers, so that the connect deadline ends the call.
#[tokio::test]
async fn an_address_that_never_answers_is_named() {
    let server = Server::start();
    let sentinel = sentinel_of("127.0.0.1", server.addr().port());
    let url = url(&[&sentinel]);
    server.pause();
    let error = in_time(CONNECT, impatient(&url).connect()).await.unwrap_err();
    assert_unreached(&error, &server.addr().to_string());
    let report = in_time(CONNECT + COMMAND, check_soon(&url)).await;
    server.resume();
    let address = server.addr().to_string();
    assert_eq!(only(&report, Code::Unreachable).address(), Some(address.as_str()), "{report}");
}

#[tokio::test]
async fn a_wrong_password_of_sentinels_is_not_shown() {
    const CANARY: &str = "s3cr3t-w0rd";
    let group = Sentinels::builder().sentinel_password("right").start();
    let url = format!("{}?sentinel_password={CANARY}", group.url());
    let report = check(&url).await;
    assert_eq!(found(&report, Code::Refused).len(), 3, "{report}");
    assert!(!report.is_ok() && !shown(&report).contains(CANARY), "{report:?}");
    let of_sentinels = |finding: &Finding| finding.advice().contains("`sentinel_password`");
    let mut refused = report.findings().filter(|finding| finding.code() == Code::Refused);
    assert!(refused.all(of_sentinels), "{report}");
    let report = check(&url.replace(CANARY, "right")).await;
    assert!(report.is_ok() && !shown(&report).contains("right@"), "{report}");
}
