//! Releasing many locks at once.

use std::fs;

use lockable_tests::Server;

use super::holders::service;
use crate::program::{Running, id, json, listening, lockable, outcome, with};

const GONE: &str = "0123456789abcdef.1764000000000000 gone";

/// Two orders and a report that are held, and an order that is done.
fn held() -> (Server, [Running; 3]) {
    let server = Server::start();
    let names = ["order:1", "order:2", "report"];
    let running = names.map(|name| service(&server, "shop", name, &[]));
    server.admin().set("disLock:order:3", "~0123456789abcdef.1764000000000000! done");
    listening(&server, 3);
    (server, running)
}

#[test]
fn nothing_is_sent_before_it_is_confirmed() {
    let (server, running) = held();
    server.admin().reset_statistics();
    let (code, said, why) = with(&server.url(), &["release", "order:*", "--reason", "move"]);
    assert_eq!((code, said.lines().count()), (2, 3), "{said}{why}");
    assert!(said.contains("\norder:1 ") && said.contains("\norder:2 "), "{said}");
    let command = "lockable --timeout 5m release 'order:*' --reason move --yes\n";
    let what = "nothing was sent; to ask the holders of these 2 locks to stop: ";
    assert!(why.ends_with(&format!("{what}{command}")), "{why}");
    assert!(why.contains("no holder could be asked of: 1 done"), "{why}");
    assert_eq!(server.admin().command_calls("publish"), 0);
    assert!(running.iter().all(Running::is_alive));
}

#[test]
fn all_that_match_are_asked_and_no_others() {
    let (server, [one, other, report]) = held();
    let (code, said, why) =
        with(&server.url(), &["release", "order:*", "--yes", "--grace", "1m", "--reason", "move"]);
    assert_eq!((code, said.lines().count()), (0, 3), "{said}{why}");
    assert!(said.contains("order:1: released by ") && said.contains("order:2: "), "{said}");
    assert!(said.ends_with("\n2 released\n"), "{said}");
    for holder in [one, other] {
        let (code, why) = holder.end();
        assert!(code == Some(124) && why.contains("move"), "{why}");
    }
    assert!(report.is_alive() && server.admin().get("disLock:order:3").is_some());
    let (code, error) = json(&server.url(), &["release", "order:*", "--yes"]);
    assert_eq!((code, &error["error"]), (3, &"free".into()), "{error}");
}

#[test]
fn those_that_stay_are_said_with_what_ends_each() {
    let server = Server::start();
    for name in ["order:1", "order:2"] {
        server.admin().command::<()>(&["SET", &format!("disLock:{name}"), GONE, "PX", "60000"]);
    }
    let arguments = ["release", "order:*", "--yes", "--grace", "50ms", "--prefix", "disLock:"];
    let (code, said, why) = with(&server.url(), &arguments);
    assert_eq!((code, said.as_str()), (4, "2 not released\n"), "{why}");
    for name in ["order:1", "order:2"] {
        let id = id(&server, name);
        let line = why.lines().find(|line| line.contains(&format!("lock `{name}`: "))).unwrap();
        let command = format!("release --id {id} --force --prefix disLock: {name}");
        assert!(line.ends_with(&command), "{line}");
    }
}

#[test]
fn a_name_that_is_held_so_is_that_lock() {
    let server = Server::start();
    let [named, other] = ["order:*", "order:1"].map(|key| service(&server, "shop", key, &[]));
    listening(&server, 2);
    let (code, said, _) = with(&server.url(), &["release", "order:*", "--grace", "1m"]);
    assert!(code == 0 && said.starts_with("order:*: released by "), "{said}");
    let (code, _, why) = with(&server.url(), &["release", "order:*", "--exact", "--yes"]);
    assert!(code == 3 && why.contains("the lock `disLock:order:*` is free"), "{why}");
    assert!(other.is_alive());
    drop(named);
}

/// Goal: a lock that changed hands since it was listed is left alone.
#[test]
fn only_the_holds_of_a_file_are_taken_away() {
    let server = Server::start();
    let admin = server.admin();
    for name in ["order:1", "order:2", "order:3"] {
        admin.set(&format!("disLock:{name}"), GONE);
    }
    let url = server.url();
    let (_, listed, _) = with(&url, &["ls", "order:[12]", "--json"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("held.json");
    fs::write(&file, listed).unwrap();
    let file = file.to_str().unwrap();
    admin.set("disLock:order:1", "0123456789abcdef.1764000000000001 next");
    let (code, said, why) = with(&url, &["release", "--ids", file, "--force"]);
    assert!(code == 2 && said.contains("\norder:2 ") && !said.contains("order:1"), "{said}");
    assert!(why.contains("holds of the file that have ended: 1; nothing was sent"), "{why}");
    let (code, said, why) = with(&url, &["release", "--ids", file, "--force", "--yes"]);
    assert_eq!(code, 0, "{why}");
    assert!(said.contains("order:2: taken away from "), "{said}");
    assert!(said.contains("order:1: ") && said.contains(" no longer has it\n"), "{said}");
    let is_there = |name: &str| admin.get(&format!("disLock:{name}")).is_some();
    assert_eq!(["order:1", "order:2", "order:3"].map(is_there), [true, false, true]);
    let (code, _, why) = with(&url, &["release", "--ids", file]);
    assert!(code == 3 && why.contains("no hold in --ids has its lock still"), "{why}");
}

#[test]
fn a_hold_that_a_file_names_twice_is_one() {
    let server = Server::start();
    server.admin().set("disLock:order:1", GONE);
    let url = server.url();
    let (_, listed, _) = with(&url, &["ls", "--json"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("held.json");
    fs::write(&file, listed.repeat(2)).unwrap();
    let release = ["release", "--force", "--yes", "--ids", file.to_str().unwrap()];
    let (code, said, why) = with(&url, &release);
    assert_eq!((code, said.lines().count(), why.as_str()), (0, 1, ""), "{said}");
    assert!(said.contains("order:1: taken away from "), "{said}");
    // Neither does one that has ended.
    let (code, said, _) = with(&url, &release);
    assert_eq!((code, said.lines().count()), (0, 1), "{said}");
}

#[test]
fn a_pattern_names_no_hold_that_could_be_taken_away() {
    let server = Server::start();
    server.admin().set("disLock:order:1", GONE);
    let (code, _, why) = with(&server.url(), &["release", "order:*", "--force", "--yes"]);
    assert_eq!(code, 2);
    assert!(why.contains("lockable ls --json 'order:*' > held.json; then: "), "{why}");
    assert!(why.ends_with("lockable release --ids held.json --force\n"), "{why}");
    let one = ["release", "order:*", "--id", &id(&server, "order:1"), "--yes"];
    assert_eq!(with(&server.url(), &one).0, 2, "an id is of one lock");
    assert!(server.admin().get("disLock:order:1").is_some());
}

#[test]
fn a_file_that_is_no_listing_is_refused() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("held.json");
    let line = |key: &str, id: &str| format!(r#"{{"key":"{key}","name":"order:1","id":"{id}"}}"#);
    for (text, why) in [
        (String::new(), "it lists no lock"),
        ("order:1".to_owned(), "`lockable ls --json` writes such a file"),
        (line("disLock:order:1", "12"), "`12` is no id"),
        (line("shop:order:1", "3fa91c02"), "is none of the prefix `disLock:`"),
    ] {
        fs::write(&file, text).unwrap();
        let mut command = lockable(&server.url());
        let (code, _, said) = outcome(command.args(["release", "--yes", "--ids"]).arg(&file));
        assert!(code == 2 && said.contains(why), "{said}");
    }
}

#[test]
fn only_the_holders_of_a_file_are_asked() {
    let (server, [one, other, report]) = held();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("held.json");
    fs::write(&file, with(&server.url(), &["ls", "order:1", "--json"]).1).unwrap();
    let file = file.to_str().unwrap();
    let ask = ["release", "--ids", file, "--yes", "--grace", "1m", "--reason", "move"];
    let (code, said, why) = with(&server.url(), &ask);
    assert!(code == 0 && said.contains("order:1: released by "), "{said}{why}");
    let (code, why) = one.end();
    assert!(code == Some(124) && why.contains("asked the holder to stop: move"), "{why}");
    assert!(other.is_alive() && report.is_alive());
}

#[test]
fn holds_that_are_taken_away_with_a_delay_are_no_ones_for_so_long() {
    let server = Server::start();
    let (admin, url) = (server.admin(), server.url());
    admin.set("disLock:order:1", GONE);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("held.json");
    fs::write(&file, with(&url, &["ls", "--json"]).1).unwrap();
    let force = ["release", "--ids", file.to_str().unwrap(), "--force", "--delay", "1h", "--yes"];
    let (code, said, why) = with(&url, &force);
    assert!(code == 0 && said.contains("no one gets it for 1h"), "{said}{why}");
    let (_, shown) = json(&url, &["show", "order:1"]);
    assert_eq!(shown["kind"], "paused", "{shown}");
    assert!(shown["remaining_ms"].as_u64().unwrap() > 3_000_000, "{shown}");
}
