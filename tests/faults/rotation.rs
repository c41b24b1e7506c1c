//! Secrets that are replaced while a locker is installed or in use, and files of secrets that are broken.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockable_runtime::check::{Code, Finding, Severity};
use lockable_runtime::{Credentials, LockErrorKind, Pem};
use lockable_tests::{Peer, Sentinels, Server, Tls};
use rstest::rstest;
use tempfile::TempDir;
use tracing::Level;

use crate::events;
use crate::support::{LIMIT, WORKER, ample, everything};

/// The secrets of a program.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// As operators do: no one reads it half written.
    fn replace(&self, name: &str, content: &str) {
        let new = self.path("new");
        fs::write(&new, content).unwrap();
        fs::rename(&new, self.path(name)).unwrap();
    }

    fn certify(&self, tls: &Tls) {
        let own = tls.client();
        self.replace("ca.crt", &tls.ca_pem());
        self.replace("client.crt", &own.certificate);
        self.replace("client.key", &own.key);
    }

    /// A program whose locker is installed with these.
    fn program(&self, how: &str, url: &str) -> Peer {
        Peer::start(WORKER, ["secrets", how, url, self.0.path().to_str().unwrap()])
    }
}

/// Ends all connections but the one of the harness.
fn disconnect(server: &Server) {
    for kind in ["normal", "pubsub"] {
        server.admin().command::<u64>(&["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"]);
    }
}

/// From now on the server has the other authority alone, for its own certificate and those of clients.
fn withdraw(server: &Server, tls: &Tls) {
    let files = [tls.ca_file(), tls.certificate_file(), tls.key_file()];
    let [authority, certificate, key] = files.each_ref().map(|file| file.to_str().unwrap());
    server.admin().command::<()>(&[
        "CONFIG",
        "SET",
        "tls-ca-cert-file",
        authority,
        "tls-cert-file",
        certificate,
        "tls-key-file",
        key,
    ]);
    disconnect(server);
}

#[rstest]
fn certificates_are_rotated_under_an_installed_locker(#[values("files", "functions")] how: &str) {
    let (old, new, folder) = (Tls::generate(), Tls::generate(), Folder::new());
    let server = Server::builder().mutual_tls(&old).start();
    folder.certify(&old);
    let mut program = folder.program(how, &server.tls_url());
    assert_eq!(program.ask("call"), "ok");
    withdraw(&server, &new);
    let refused = program.ask("call");
    assert!(refused.starts_with("Refused") && refused.contains("root_certificate`"), "{refused}");
    folder.certify(&new);
    assert_eq!(program.ask("call"), "ok");
    withdraw(&server, &old);
    folder.certify(&old);
    assert_eq!(program.ask("call"), "ok");
}

#[rstest]
fn a_password_is_rotated_under_an_installed_locker(#[values("files", "functions")] how: &str) {
    let folder = Folder::new();
    let server =
        Server::builder().password("of-no-test").user("app", "on >one ~* &* +@all").start();
    folder.replace("password", "one");
    let mut program = folder.program(how, &server.url());
    assert_eq!(program.ask("call"), "ok");
    server.admin().command::<()>(&["ACL", "SETUSER", "app", "resetpass", ">two"]);
    server.admin().command::<u64>(&["CLIENT", "KILL", "USER", "app"]);
    let refused = program.ask("call");
    assert!(
        refused.starts_with("Refused") && refused.contains("`LockerBuilder::credentials`"),
        "{refused}"
    );
    folder.replace("password", "two");
    assert_eq!(program.ask("call"), "ok");
}

/// The Sentinels are asked again because the primary ends its connections.
#[rstest]
fn a_password_of_sentinels_is_rotated(#[values("files", "functions")] how: &str) {
    const RIGHTS: &str =
        "on >one +sentinel|get-master-addr-by-name +subscribe +ping &+switch-master";
    let folder = Folder::new();
    let group =
        Sentinels::builder().sentinel_user("watcher", RIGHTS).sentinel_password("of-no-test");
    let group = group.start();
    folder.replace("sentinel", "one");
    let mut program = folder.program(how, &group.url());
    assert_eq!(program.ask("call"), "ok");
    folder.replace("sentinel", "two");
    for sentinel in group.sentinels() {
        sentinel.admin().command::<()>(&["ACL", "SETUSER", "watcher", "resetpass", ">two"]);
        sentinel.admin().command::<u64>(&["CLIENT", "KILL", "USER", "watcher"]);
    }
    disconnect(group.primary());
    assert_eq!(program.ask("call"), "ok");
}

/// A connection that is open goes on, the next one is refused with the path, and nothing of the content is shown.
#[rstest]
#[case::missing("client.key", None, "No such file")]
#[case::empty("ca.crt", Some(""), "no certificate")]
#[case::no_certificate("client.crt", Some("canary-in-a-file"), "no certificate")]
#[case::no_password("password", Some("\n"), "it is empty")]
#[tokio::test]
async fn a_broken_file_is_named(
    #[case] name: &str,
    #[case] content: Option<&str>,
    #[case] words: &str,
) {
    events::keep_secret("canary-in-a-file");
    let (tls, folder) = (Tls::generate(), Folder::new());
    let server = Server::builder().user("app", "on >word ~* &* +@all").mutual_tls(&tls).start();
    folder.certify(&tls);
    folder.replace("password", "word\n");
    let builder = ample(&server.tls_url())
        .root_certificate(Pem::file(folder.path("ca.crt")))
        .client_certificate(Pem::files([folder.path("client.crt"), folder.path("client.key")]))
        .credentials(Credentials::file("app", folder.path("password")));
    let locker = builder.clone().connect().await.unwrap();
    let guard = locker.lock("k").acquire().await.unwrap();
    let before = fs::read_to_string(folder.path(name)).unwrap();
    match content {
        Some(content) => folder.replace(name, content),
        None => fs::remove_file(folder.path(name)).unwrap(),
    }
    guard.lease().extend(LIMIT).await.unwrap();
    disconnect(&server);
    let error = guard.lease().extend(LIMIT).await.unwrap_err();
    let (text, path) = (error.to_string(), folder.path(name));
    assert!(error.kind() == LockErrorKind::Refused && text.contains(words), "{text}");
    assert!(text.contains(": the ") && !everything(&error).contains("canary"), "{text}");
    assert!(text.contains(&shown(&path)), "{text}");
    let report = locker.check().await;
    assert_eq!(report.findings().next().unwrap().code(), Code::Credentials, "{report}");
    let early = builder.connect_lazy().unwrap_err();
    assert!(early.kind() == LockErrorKind::InvalidOption, "{early}");
    assert!(early.to_string().contains(&shown(&path)), "{early}");
    folder.replace(name, &before);
    guard.lease().extend(LIMIT).await.unwrap();
    guard.release().await.unwrap();
    assert!(events::leaks().is_empty(), "{:?}", events::leaks());
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Once in the life of the process, whatever number of connections and lockers has it; a check has the same words.
#[tokio::test]
async fn a_certificate_among_several_is_named_by_its_number() {
    let (ending, lasting) = (Tls::ending(13 * DAY), Tls::generate());
    let server = Server::builder().tls(&ending).start();
    let both = Pem::new(lasting.ca_pem() + "\n" + &ending.ca_pem());
    let locker = ample(&server.tls_url()).root_certificate(both).connect().await.unwrap();
    let report = locker.check().await;
    let ends = report.findings().filter(|finding| finding.code() == Code::CertificateEnds);
    let messages: Vec<_> = ends.map(Finding::message).collect();
    assert_eq!(messages.len(), 1, "{report}");
    assert!(messages[0].contains(" 2 of 2 "), "{report}");
}

#[tokio::test]
async fn a_certificate_that_ends_soon_is_a_warning() {
    events::listen();
    let (tls, folder) = (Tls::ending(13 * DAY), Folder::new());
    let server = Server::builder().mutual_tls(&tls).start();
    folder.replace("ca.crt", &tls.ca_pem());
    let own = tls.client_ending(3 * DAY);
    let builder = ample(&server.tls_url())
        .root_certificate(Pem::file(folder.path("ca.crt")))
        .client_certificate(Pem::from(own));
    let locker = builder.clone().connect().await.unwrap();
    builder.connect().await.unwrap();
    disconnect(&server);
    locker.lock("k").acquire().await.unwrap().release().await.unwrap();
    let of_roots = format!("the root certificate ({})", shown(&folder.path("ca.crt")));
    assert_eq!(events::logged_with(Level::WARN, &[&of_roots, "is valid until"]), 1);
    let report = locker.check().await;
    let ending = report.findings().filter(|finding| finding.code() == Code::CertificateEnds);
    let ending: Vec<_> = ending.collect();
    assert_eq!(ending.len(), 2, "{report}");
    for finding in ending {
        assert_eq!(finding.severity(), Severity::Warning);
        assert_eq!(events::logged_with(Level::WARN, &[finding.message()]), 1, "{report}");
    }
}

#[tokio::test]
async fn a_certificate_that_lasts_is_no_warning() {
    let tls = Tls::ending(16 * DAY);
    let server = Server::builder().mutual_tls(&tls).start();
    let own = Pem::from(tls.client_ending(15 * DAY));
    let builder = ample(&server.tls_url()).root_certificate(tls.roots()).client_certificate(own);
    let report = builder.connect_lazy().unwrap().check().await;
    assert!(report.findings().all(|finding| finding.code() != Code::CertificateEnds), "{report}");
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
