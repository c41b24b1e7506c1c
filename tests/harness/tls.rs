//! Clients and servers accept each other's certificates, or do not.

use std::fs;
use std::path::Path;
use std::process::Command;

use lockable_tests::{Identity, Server, Tls, python};
use tempfile::TempDir;

#[test]
fn only_the_authoritys_clients_accept_the_tls_certificate() {
    let (tls, stranger) = (Tls::generate(), Tls::generate());
    let server = Server::builder().tls(&tls).start();
    assert!(can_ping(&server, &tls, None));
    assert!(!can_ping(&server, &stranger, None));
}

#[test]
fn a_mutual_server_accepts_only_clients_of_its_authority() {
    let (tls, stranger) = (Tls::generate(), Tls::generate());
    let server = Server::builder().mutual_tls(&tls).start();
    assert!(can_ping(&server, &tls, Some(&tls.client())));
    for refused in [None, Some(&tls.expired_client()), Some(&stranger.client())] {
        assert!(!can_ping(&server, &tls, refused), "{refused:?}");
    }
}

#[test]
fn a_server_presents_another_certificate_after_its_restart() {
    let tls = Tls::generate();
    let server = Server::builder().tls(&tls).start();
    let changes: [fn(&Tls); 2] = [|tls| tls.certify_server(&["elsewhere"]), Tls::expire_server];
    for change in changes {
        change(&tls);
        assert!(can_ping(&server, &tls, None), "the server reads it later");
        server.restart();
        assert!(!can_ping(&server, &tls, None));
        tls.certify_server(&["localhost"]);
        server.restart();
        assert!(can_ping(&server, &tls, None));
    }
}

fn can_ping(server: &Server, tls: &Tls, client: Option<&Identity>) -> bool {
    let directory = TempDir::new().unwrap();
    let mut python = Command::new(python::interpreter());
    python.args(["-c", PING, &server.tls_url()]).arg(tls.ca_file());
    python.args(client.into_iter().flat_map(|client| written(client, directory.path())));
    python.output().unwrap().status.success()
}

fn written(client: &Identity, directory: &Path) -> [std::path::PathBuf; 2] {
    let files = [directory.join("client.crt"), directory.join("client.key")];
    for (file, text) in files.iter().zip([&client.certificate, &client.key]) {
        fs::write(file, text).unwrap();
    }
    files
}

const PING: &str = "
import redis, sys
own = dict(zip(['ssl_ca_certs', 'ssl_certfile', 'ssl_keyfile'], sys.argv[2:]))
redis.from_url(sys.argv[1], **own).ping()
";
