//! What a check says of Sentinels, and of the primary that they name.

use lockable_runtime::LockErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use lockable_runtime::check::{Code, Finding, Severity};
use lockable_tests::{Sentinels, SentinelsBuilder, Server, Shared, Tls, wait};

use super::{at_each, awaited, check, check_soon, codes, found, only, shown};
use crate::support::{LONG, ample, sentinel_of};

/// A group without a fault.
fn sound_group() -> SentinelsBuilder {
    let group = Sentinels::builder().down_after(LONG).server_config("appendonly", "yes");
    group.server_config("appendfsync", "always").server_config("min-replicas-to-write", "1")
}

fn url(sentinels: &[&Server]) -> String {
    let hosts: Vec<_> = sentinels.iter().map(|sentinel| sentinel.addr().to_string()).collect();
    format!("redis-sentinel://{}/{}", hosts.join(","), Sentinels::NAME)
}

/// One that several tests use, and none harms.
fn shared_group() -> Arc<Sentinels> {
    static SOUND: Shared<Sentinels> = Shared::unstarted();
    SOUND.get(|| sound_group().start())
}

#[tokio::test]
async fn a_sound_group_is_without_findings() {
    let group = shared_group();
    let report = check(&group.url()).await;
    assert_eq!(codes(&report), [], "{report}");
    let primary = group.primary().addr().to_string();
    assert_eq!(report.address(), Some(primary.as_str()));
    assert!(report.to_string().contains(&format!("locks on {}/0,", group.url())), "{report}");
    assert!(report.server().is_some() && report.clock_difference().is_some(), "{report}");
    assert!(report.to_string().contains(&format!("the primary is {primary}")), "{report}");
}

#[tokio::test]
async fn a_group_over_tls_is_examined_too() {
    let tls = Tls::generate();
    let group = sound_group().tls(&tls).start();
    let builder = ample(&group.url()).root_certificate(tls.roots());
    let report = builder.connect_lazy().unwrap().check().await;
    assert_eq!(codes(&report), [], "{report}");
    let report = check(&group.url()).await;
    assert_eq!(found(&report, Code::Refused).len(), 3, "{report}");
    assert!(report.to_string().contains("`LockerBuilder::root_certificate`"), "{report}");
}

#[tokio::test]
async fn what_endangers_locks_is_found_at_the_primary() {
    let group = Sentinels::builder().down_after(LONG).start();
    let report = check(&group.url()).await;
    assert_eq!(codes(&report), [Code::NotPersistent, Code::UnconfirmedReplication], "{report}");
    assert_eq!(found(&report, Code::NotPersistent), at_each(Severity::Warning, [group.primary()]));
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
    assert_eq!(found(&report, Code::SentinelSilent), at_each(Severity::Warning, [first]));
    assert!(only(&report, Code::SentinelSilent).message().contains("refused"), "{report}");
    second.pause();
    let report = wait::ends(check_soon(&group.url())).await;
    let silent = at_each(Severity::Warning, [first, second]);
    assert_eq!(found(&report, Code::SentinelSilent), silent, "{report}");
    assert!(report.is_ok() && report.address().is_some(), "{report}");
}

#[tokio::test]
async fn a_sentinel_that_lacks_the_name_is_a_warning() {
    let group = sound_group().start();
    let other = &group.sentinels()[1];
    other.admin().command::<()>(&["SENTINEL", "REMOVE", Sentinels::NAME]);
    let report = check(&group.url()).await;
    assert_eq!(codes(&report), [Code::UnknownPrimary], "{report}");
    assert_eq!(found(&report, Code::UnknownPrimary), at_each(Severity::Warning, [other]));
}

#[tokio::test]
async fn a_server_among_the_sentinels_is_a_warning() {
    let group = shared_group();
    let server = group.primary();
    let [first, second, _] = group.sentinels() else { panic!("three Sentinels") };
    let report = check(&url(&[first, server, second])).await;
    assert_eq!(codes(&report), [Code::NotASentinel], "{report}");
    assert_eq!(found(&report, Code::NotASentinel), at_each(Severity::Warning, [server]));
    let advice = only(&report, Code::NotASentinel).advice();
    assert!(advice.contains(&server.url()), "{report}");
}

/// Goal: behind a translation of addresses, Sentinels name one that leads nowhere from here.
/// Method: nothing listens at the address that they name, or nothing answers there until the deadline ends.
#[tokio::test]
async fn an_address_that_leads_nowhere_is_named() {
    let silent = Server::start();
    silent.pause();
    for address in [SocketAddr::from(([127, 0, 0, 1], 1)), silent.addr()] {
        let sentinel = sentinel_of(address, &[Sentinels::NAME]).start();
        let url = url(&[&sentinel]);
        let error = wait::ends(awaited(&url).connect()).await.unwrap_err();
        assert!(error.is_unavailable() && error.kind() != LockErrorKind::Refused, "{error:?}");
        let words = [&format!("({address})"), "replica-announce-ip", "sentinel announce-ip"];
        assert!(words.iter().all(|words| error.to_string().contains(words)), "{error}");
        let report = wait::ends(check_soon(&url)).await;
        let finding = only(&report, Code::Unreachable);
        assert_eq!(finding.address(), Some(address.to_string().as_str()), "{report}");
        assert!(finding.advice().contains("`replica-announce-ip`"), "{report}");
    }
}

#[tokio::test]
async fn a_wrong_password_of_sentinels_is_not_shown() {
    const CANARY: &str = "s3cr3t-w0rd";
    let group = Sentinels::builder().down_after(LONG).sentinel_password("right").start();
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
