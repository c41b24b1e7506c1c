//! Certificates that are none, and certificates without TLS: errors before anything is opened.

use lockable_runtime::LockErrorKind;
use lockable_runtime::{LockError, Locker, Pem};
use lockable_tests::Tls;

use crate::support::everything;

const URL: &str = "rediss://localhost";

#[track_caller]
fn assert_invalid(outcome: Result<Locker, LockError>, words: &[&str]) {
    let error = outcome.unwrap_err();
    assert!(error.kind() == LockErrorKind::InvalidOption, "{error:?}");
    let text = error.to_string();
    assert!(words.iter().all(|words| text.contains(words)), "{text}");
}

#[test]
fn what_is_no_root_certificate_is_refused() {
    let tls = Tls::generate();
    let key = tls.client().key;
    let broken = tls.ca_pem().replace("MII", "%%%");
    let no_certificate = "-----BEGIN CERTIFICATE-----\nTUlJ\n-----END CERTIFICATE-----\n";
    for pem in ["", "no certificate", &key, &broken, no_certificate] {
        for url in [URL, "rediss-sentinel://a,b/mm"] {
            let locker = Locker::builder().url(url).root_certificate(Pem::new(pem)).connect_lazy();
            assert_invalid(locker, &["the root certificate"]);
        }
    }
}

#[test]
fn what_is_no_client_certificate_is_refused() {
    let (one, other) = (Tls::generate().client(), Tls::generate().client());
    let no_key = "-----BEGIN PRIVATE KEY-----\nTUlJ\n-----END PRIVATE KEY-----\n";
    let locked = one.key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let cases = [
        ("", one.key.as_str(), "no certificate"),
        ("no certificate", &one.key, "no certificate"),
        (&one.certificate, "", "no private key"),
        (&one.certificate, &one.certificate, "no private key"),
        (&one.certificate, &locked, "password"),
        (&one.certificate, no_key, "client certificate"),
        (&one.certificate, &other.key, "another certificate"),
    ];
    for (certificate, key, words) in cases {
        let own = Pem::new(format!("{certificate}\n{key}"));
        let builder = Locker::builder().url(URL).client_certificate(own);
        assert_invalid(builder.connect_lazy(), &["the client certificate", words]);
    }
    let both = format!("{}{}", one.key, one.certificate);
    let both = Pem::new(both);
    let builder = Locker::builder().url(URL).client_certificate(both);
    builder.connect_lazy().unwrap();
}

#[test]
fn certificates_need_a_url_with_tls() {
    let (tls, own) = (Tls::generate(), Tls::generate().client());
    for url in ["redis://localhost", "redis+unix:///run/redis.sock", "redis-sentinel://a,b/mm"] {
        let root = Locker::builder().url(url).root_certificate(tls.roots());
        assert_invalid(root.connect_lazy(), &["the root certificate", "`rediss://`"]);
        let own = Pem::from(own.clone());
        let client = Locker::builder().url(url).client_certificate(own);
        assert_invalid(client.connect_lazy(), &["the client certificate", "`rediss-sentinel://`"]);
    }
    // A program that is tested in memory keeps its settings.
    Locker::builder().url("memory://").root_certificate(tls.roots()).connect_lazy().unwrap();
}

#[test]
fn a_server_is_never_trusted_without_a_certificate() {
    for url in ["rediss://:canary@localhost/#insecure", "rediss-sentinel://:canary@a/mm#insecure"] {
        let error = Locker::builder().url(url).connect_lazy().unwrap_err();
        assert!(
            error.kind() == LockErrorKind::InvalidUrl && error.to_string().contains("#insecure"),
            "{error}"
        );
        assert!(!everything(&error).contains("canary"), "{error:?}");
    }
}
