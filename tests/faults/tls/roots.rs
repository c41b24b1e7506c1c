//! The root certificates of the system, which a program finds by its environment.

use std::fs;
use std::path::Path;

use lockable_tests::{Program, Server, Tls};
use tempfile::TempDir;

use crate::support::{LIMIT, WORKER};

/// What a program says that connects where the system's roots are this file and this folder.
fn connected(server: &Server, [file, folder]: [&Path; 2], own: Option<&Path>) -> String {
    let program = Program::new(WORKER)
        .arg("tls")
        .env("SSL_CERT_FILE", file.to_str().unwrap())
        .env("SSL_CERT_DIR", folder.to_str().unwrap())
        .arg(&server.tls_url());
    let own = own.map(|file| file.to_str().unwrap());
    own.into_iter().fold(program, Program::arg).run(3 * LIMIT).unwrap()
}

#[test]
fn a_system_without_roots_is_named() {
    let (tls, empty) = (Tls::generate(), TempDir::new().unwrap());
    let server = Server::builder().tls(&tls).start();
    let (none, nothing) = (empty.path().join("none"), empty.path().join("nothing"));
    fs::write(&nothing, "").unwrap();
    for file in [&none, &nothing] {
        let said = connected(&server, [file, empty.path()], None);
        assert!(said.contains("Refused: rediss://localhost"), "{said}");
        assert!(said.contains("this system has no root certificates"), "{said}");
        assert!(said.contains("install `ca-certificates`"), "{said}");
        assert!(said.contains("`LockerBuilder::root_certificate`"), "{said}");
    }
    let said = connected(&server, [&none, empty.path()], Some(&tls.ca_file()));
    assert_eq!(said, "connected\n", "its own root takes their place");
}

#[test]
fn the_systems_roots_are_trusted() {
    let (tls, folder) = (Tls::generate(), TempDir::new().unwrap());
    let server = Server::builder().tls(&tls).start();
    let broken = "-----BEGIN CERTIFICATE-----\n%\n-----END CERTIFICATE-----\n";
    fs::write(folder.path().join("broken.pem"), broken).unwrap();
    let said = connected(&server, [&tls.ca_file(), folder.path()], None);
    assert_eq!(said, "connected\n", "a broken one is left out");
}

#[test]
fn a_root_that_was_installed_later_is_trusted() {
    let (tls, stranger, folder) = (Tls::generate(), Tls::generate(), TempDir::new().unwrap());
    let server = Server::builder().tls(&tls).start();
    let roots = folder.path().join("roots.pem");
    fs::write(&roots, stranger.ca_pem()).unwrap();
    let [roots, installed] = [roots, tls.ca_file()].map(|file| file.to_str().unwrap().to_owned());
    let program =
        Program::new(WORKER).arg("tls").env("SSL_CERT_FILE", &roots).arg(&server.tls_url());
    let said = program.arg("install").arg(&installed).arg(&roots).run(3 * LIMIT).unwrap();
    assert!(said.contains("UnknownIssuer") && said.ends_with("connected\n"), "{said}");
}
