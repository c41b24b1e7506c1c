//! TLS: whose certificates are accepted, and what errors say where one is not.

mod options;
mod roots;

use lockable_runtime::LockErrorKind;
use lockable_runtime::check::Code;
use lockable_runtime::{LockError, Locker, LockerBuilder, Pem};
use lockable_tests::{Identity, Sentinels, Server, Tls, wait};
use rstest::rstest;

use crate::support::{CONNECT, KEY, LIMIT, ample, connect_ample, everything, server_and_proxy};

/// Trusts the authority, and shows a certificate where there is one.
fn trusting(url: &str, tls: &Tls, own: Option<&Identity>) -> LockerBuilder {
    let builder = ample(url).root_certificate(tls.roots());
    match own {
        Some(own) => builder.client_certificate(Pem::from(own.clone())),
        None => builder,
    }
}

async fn refusal(url: &str, tls: &Tls, own: Option<&Identity>) -> LockError {
    trusting(url, tls, own).connect().await.unwrap_err()
}

/// A human has to mend it, and these words say how; the cause is there, too.
#[track_caller]
fn assert_refused(error: &LockError, url: &str, words: &[&str]) {
    let text = error.to_string();
    assert!(error.kind() == LockErrorKind::Refused && error.is_unavailable(), "{error:?}");
    assert!(text.starts_with(url) && !text.contains('\n'), "{text}");
    assert!(words.iter().all(|words| text.contains(words)), "{text}");
    assert!(std::error::Error::source(error).is_some(), "{}", everything(error));
}

/// Acquires, waits for another process's release, and releases: commands and a subscription.
async fn assert_locks(locker: &Locker, server: &Server) {
    let (admin, other) = (server.admin(), connect_ample(&server.url()).await);
    let guard = other.lock("k").acquire().await.unwrap();
    let waiting = tokio::spawn(locker.lock("k").acquire());
    wait::until_async(LIMIT, async || admin.pttl("lockable:queue:{disLock:k}") > 0).await;
    guard.release().await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();
    assert_eq!(admin.get(KEY), None);
}

#[tokio::test]
async fn a_server_is_trusted_by_its_authority() {
    let tls = Tls::generate();
    let server = Server::builder().tls(&tls).start();
    let locker = trusting(&server.tls_url(), &tls, None).connect().await.unwrap();
    assert_locks(&locker, &server).await;
    assert!(format!("{locker:?}").contains("rediss://localhost"), "{locker:?}");
}

#[tokio::test]
async fn one_of_several_roots_may_be_the_servers() {
    let (tls, stranger) = (Tls::generate(), Tls::generate());
    let server = Server::builder().tls(&tls).start();
    let both = Pem::new(stranger.ca_pem() + "\n" + &tls.ca_pem());
    let locker = ample(&server.tls_url()).root_certificate(both).connect().await.unwrap();
    assert_locks(&locker, &server).await;
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_trusted() {
    let (tls, stranger) = (Tls::generate(), Tls::generate());
    let server = Server::builder().tls(&tls).start();
    let error = refusal(&server.tls_url(), &stranger, None).await;
    assert_refused(&error, &server.tls_url(), &["UnknownIssuer", "root_certificate`"]);
    let error = ample(&server.tls_url()).connect().await.unwrap_err();
    assert_refused(&error, &server.tls_url(), &["root_certificate`"]);
}

/// In each version of TLS a server asks for a certificate at another time.
#[rstest]
#[tokio::test]
async fn a_mutual_server_is_opened_by_a_certificate(#[values("TLSv1.2", "TLSv1.3")] version: &str) {
    let (tls, stranger) = (Tls::generate(), Tls::generate());
    let server = Server::builder().config("tls-protocols", version).mutual_tls(&tls).start();
    let locker = trusting(&server.tls_url(), &tls, Some(&tls.client())).connect().await.unwrap();
    assert_locks(&locker, &server).await;
    assert!(locker.check().await.is_ok());
    let error = refusal(&server.tls_url(), &tls, None).await;
    assert_refused(&error, &server.tls_url(), &["client_certificate`"]);
    for (own, reason) in [(tls.expired_client(), "expired"), (stranger.client(), "authority")] {
        let error = refusal(&server.tls_url(), &tls, Some(&own)).await;
        assert_refused(&error, &server.tls_url(), &[reason, "client_certificate`"]);
        assert_hidden(&own, &everything(&error));
    }
}

/// Nothing of a key is shown.
fn assert_hidden(own: &Identity, text: &str) {
    for line in own.key.lines().filter(|line| !line.starts_with("-----")) {
        assert!(!text.contains(line), "{text}");
    }
}

#[rstest]
#[case::expired(Tls::expire_server, &["expired", "tls-cert-file"])]
#[case::of_another_name(
    |tls: &Tls| tls.certify_server(&["cache.example.com"]),
    &["localhost", "cache.example.com", "write a host into the URL"]
)]
#[tokio::test]
async fn a_servers_wrong_certificate_is_refused(#[case] certify: fn(&Tls), #[case] words: &[&str]) {
    let tls = Tls::generate();
    certify(&tls);
    let server = Server::builder().tls(&tls).start();
    let error = refusal(&server.tls_url(), &tls, None).await;
    assert_refused(&error, &server.tls_url(), words);
}

#[tokio::test]
async fn a_plain_url_to_a_tls_port_names_the_other() {
    let tls = Tls::generate();
    let server = Server::builder().mutual_tls(&tls).start();
    let url = server.tls_url().replace("rediss://", "redis://");
    assert_advised(ample(&url), "`rediss://`").await;
    let sentinel = url.replace("redis://", "redis-sentinel://") + "/mm";
    assert_advised(ample(&sentinel), "`rediss-sentinel://`").await;
}

/// Such a server may answer, or wait for more of what it takes for a command.
#[tokio::test]
async fn a_tls_url_to_a_plain_port_names_the_other() {
    let server = Server::start();
    let url = server.url().replace("redis://", "rediss://");
    let silent = trusting(&url, &Tls::generate(), None).connect_deadline(CONNECT);
    assert_advised(silent, "write `redis://`").await;
}

async fn assert_advised(builder: LockerBuilder, advice: &str) {
    let error = builder.clone().connect().await.unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains(advice), "{error}");
    let report = builder.connect_lazy().unwrap().check().await;
    assert!(report.to_string().contains(advice), "{report}");
}

/// The server has answered before, so its URL is right.
#[tokio::test]
async fn a_server_that_breaks_later_gives_no_such_advice() {
    let (server, proxy) = server_and_proxy();
    let locker = connect_ample(&proxy.url()).await;
    server.kill();
    let error = locker.lock("k").acquire().await.unwrap_err();
    assert!(error.is_unavailable() && !error.to_string().contains("rediss"), "{error}");
}

#[tokio::test]
async fn certificates_may_change_while_a_locker_lives() {
    let (tls, stranger) = (Tls::generate(), Tls::generate());
    let server = Server::builder().tls(&tls).start();
    let locker = trusting(&server.tls_url(), &tls, None).connect().await.unwrap();
    tls.certify_server(&["localhost"]);
    server.restart();
    assert_locks(&locker, &server).await;
    for file in [Tls::certificate_file, Tls::key_file] {
        std::fs::copy(file(&stranger), file(&tls)).unwrap();
    }
    server.restart();
    let error = locker.lock("k").try_acquire().await.unwrap_err();
    assert!(
        error.kind() == LockErrorKind::Refused && error.to_string().contains("root_certificate`"),
        "{error}"
    );
    tls.certify_server(&["localhost"]);
    server.restart();
    assert_locks(&locker, &server).await;
}

#[tokio::test]
async fn a_check_names_what_mends_tls() {
    let tls = Tls::generate();
    let server = Server::builder().mutual_tls(&tls).start();
    let trusting = ample(&server.tls_url()).root_certificate(tls.roots());
    for (builder, method) in
        [(ample(&server.tls_url()), "root_certificate`"), (trusting, "client_certificate`")]
    {
        let report = builder.connect_lazy().unwrap().check().await;
        let finding = report.findings().next().unwrap();
        assert_eq!(finding.code(), Code::Refused, "{report}");
        assert!(finding.advice().contains(method), "{report}");
    }
}

#[tokio::test]
async fn sentinels_and_their_primary_see_one_certificate() {
    let (tls, stranger) = (Tls::generate(), Tls::generate());
    let group = Sentinels::builder().mutual_tls(&tls).start();
    let locker = trusting(&group.url(), &tls, Some(&tls.client())).connect().await.unwrap();
    assert_locks(&locker, group.primary()).await;
    let strange = stranger.client();
    for own in [None, Some(&strange)] {
        let error = refusal(&group.url(), &tls, own).await;
        assert_refused(&error, &group.url(), &["client_certificate`"]);
    }
    let error = refusal(&group.url(), &stranger, Some(&tls.client())).await;
    assert_refused(&error, &group.url(), &["root_certificate`"]);
}

/// The Sentinels' own names are in the certificate, and the address that they have for the primary is not.
#[tokio::test]
async fn a_primary_without_its_address_is_refused() {
    let tls = Tls::generate();
    tls.certify_server(&["localhost"]);
    let group = Sentinels::builder().tls(&tls).start();
    let error = refusal(&group.url(), &tls, None).await;
    assert_refused(&error, &group.url(), &["127.0.0.1", "announce-hostnames"]);
}
