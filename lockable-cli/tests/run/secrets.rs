//! Secrets in files: named by options or by the environment, and replaced while a command runs.

use std::fs;
use std::path::Path;

use lockable_tests::{Sentinels, Server, Tls, wait};
use tempfile::TempDir;

use crate::program::{LIMIT, Running, lockable, outcome, run};

/// The certificates of a client in a folder, and the variables that name them.
fn certify(folder: &Path, tls: &Tls) -> [(&'static str, String); 3] {
    let own = tls.client();
    let files = [
        ("LOCKABLE_CA_FILE", tls.ca_pem()),
        ("LOCKABLE_CERT_FILE", own.certificate),
        ("LOCKABLE_KEY_FILE", own.key),
    ];
    files.map(|(name, content)| {
        let path = folder.join(name);
        fs::write(&path, content).unwrap();
        (name, path.to_str().unwrap().to_owned())
    })
}

#[test]
fn the_environment_names_the_files_of_all_secrets() {
    let (tls, folder) = (Tls::generate(), TempDir::new().unwrap());
    let server = Server::builder().user("app", "on >secret ~* &* +@all").mutual_tls(&tls).start();
    let password = folder.path().join("password");
    fs::write(&password, "secret\n").unwrap();
    let variables = certify(folder.path(), &tls);
    let url = server.tls_url().replace("rediss://", "rediss://app@");
    let mut command = run(&url, &[], "echo ran");
    command.env("LOCKABLE_PASSWORD_FILE", &password).envs(variables.clone());
    assert_eq!(outcome(&mut command), (0, "ran\n".to_owned(), String::new()));
    let [authority, certificate, _] = variables;
    let mut half = lockable(&url);
    half.envs([authority, certificate]).env("LOCKABLE_PASSWORD_FILE", &password);
    let (code, _, why) = outcome(half.args(["show", "job"]));
    assert!(code == 2 && why.contains("LOCKABLE_KEY_FILE"), "{code} {why}");
}

/// An option is what is written for this call, a variable for all.
#[test]
fn an_option_has_priority_over_the_environment() {
    let server = Server::builder().user("app", "on >secret ~* &* +@all").start();
    let folder = TempDir::new().unwrap();
    let [right, wrong] = ["secret", "wrong"].map(|password| {
        let path = folder.path().join(password);
        fs::write(&path, password).unwrap();
        path
    });
    let url = format!("redis://app@{}", server.addr());
    let mut command = lockable(&url);
    command.env("LOCKABLE_PASSWORD_FILE", wrong).arg("--password-file").arg(right);
    assert_eq!(outcome(command.args(["show", "job"])).0, 3);
}

#[test]
fn sentinels_have_a_file_of_their_own() {
    const RIGHTS: &str =
        "on >watch +sentinel|get-master-addr-by-name +subscribe +ping &+switch-master";
    let group = Sentinels::builder().sentinel_user("watcher", RIGHTS);
    let group = group.sentinel_password("of-no-test").start();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "watch\n").unwrap();
    let url = format!("{}?sentinel_user=watcher", group.url());
    let mut command = lockable(&url);
    command.arg("--sentinel-password-file").arg(&file).args(["show", "job"]);
    assert_eq!(outcome(&mut command).0, 3);
    fs::write(&file, "wrong").unwrap();
    let (code, _, why) = outcome(&mut command);
    assert!(code == 69 && why.contains("--sentinel-password-file"), "{code} {why}");
}

/// Goal: a lock is held for longer than a password and a certificate are valid.
/// Method: the server has the new ones alone, and ends the connections; the program logs in again, to renew the lock.
#[test]
fn a_long_run_follows_secrets_that_are_rotated() {
    let (old, new, folder) = (Tls::generate(), Tls::generate(), TempDir::new().unwrap());
    let server = Server::builder().user("app", "on >one ~* &* +@all").mutual_tls(&old).start();
    let password = folder.path().join("password");
    fs::write(&password, "one").unwrap();
    let variables = certify(folder.path(), &old);
    let url = server.tls_url().replace("rediss://", "rediss://app@");
    let mut command = run(&url, &["--expire", "20s"], "echo $$; cat; echo ended");
    command.env("LOCKABLE_PASSWORD_FILE", &password).envs(variables);
    let running = Running::of(command, 1);
    fs::write(&password, "two").unwrap();
    certify(folder.path(), &new);
    let admin = server.admin();
    let files = [new.ca_file(), new.certificate_file(), new.key_file()];
    let [authority, certificate, key] = files.each_ref().map(|file| file.to_str().unwrap());
    let certificates = ["tls-cert-file", certificate, "tls-key-file", key];
    let command = [&["CONFIG", "SET", "tls-ca-cert-file", authority], &certificates[..]].concat();
    admin.command::<()>(&command);
    admin.command::<()>(&["ACL", "SETUSER", "app", "resetpass", ">two"]);
    admin.command::<u64>(&["CLIENT", "KILL", "USER", "app"]);
    let is_back = || admin.command::<String>(&["CLIENT", "LIST"]).contains("user=app");
    wait::until(LIMIT, is_back);
    assert!(admin.get("disLock:job").is_some());
    assert_eq!(running.end(), (Some(0), String::new()));
    assert_eq!(admin.get("disLock:job"), None);
}
