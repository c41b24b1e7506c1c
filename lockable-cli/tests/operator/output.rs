//! What is shown of other people's texts, and what is not.

use lockable_tests::{Server, clock};
use serde_json::{Value, json};

use super::holders::{incident, service};
use crate::program::{json, outcome, script, with};

/// Everything that can be asked about the lock `order:7`.
const QUESTIONS: [&[&str]; 6] = [
    &["ls"],
    &["ls", "--json"],
    &["show", "order:7"],
    &["show", "order:7", "--json"],
    &["release", "order:7", "--id", "00000000"],
    &["release", "order:7", "--id", "00000000", "--json"],
];

#[test]
fn no_output_has_an_owner_token() {
    let server = Server::start();
    let running = incident(&server);
    let owner = server.admin().get("disLock:order:7").unwrap();
    let token = owner.split(' ').next().unwrap();
    for question in QUESTIONS {
        let (_, said, why) = with(&server.url(), question);
        assert!(!said.is_empty() || !why.is_empty());
        for part in token.split('.') {
            assert!(!said.contains(part) && !why.contains(part), "{question:?}: {said}{why}");
        }
    }
    drop(running);
}

/// Another library writes what it likes, and a request id is what a client sent.
#[test]
fn no_escape_sequence_reaches_the_terminal() {
    let server = Server::start();
    let (admin, evil) = (server.admin(), "\u{1b}]0;x\u{7}\u{9b}31m");
    let owner = format!("0123456789abcdef.1764000000000000 {evil}");
    admin.set(&format!("disLock:{evil}"), &owner);
    admin.set("disLock:order:7", &owner);
    for question in QUESTIONS.into_iter().chain([&["show", evil][..], &["release", evil]]) {
        let (_, said, why) = with(&server.url(), question);
        let is_bad = |c: char| c.is_control() && c != '\n';
        assert!(!said.contains(is_bad) && !why.contains(is_bad), "{question:?}: {said:?}{why:?}");
    }
}

#[test]
fn a_listing_as_json_is_an_object_a_lock() {
    let server = Server::start();
    let running = incident(&server);
    let (code, said, _) = with(&server.url(), &["ls", "order:*", "--json"]);
    assert_eq!((code, said.lines().count()), (0, 1), "{said}");
    let lock: Value = serde_json::from_str(&said).unwrap();
    let expected = json!({
        "schema": 1, "key": "disLock:order:7", "name": "order:7", "kind": "exclusive",
        "request_id": "checkout-7", "from_queue": false, "waiting": 1,
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&lock[name], value, "{name}");
    }
    assert!(lock["held_ms"].as_u64() < Some(60_000) && lock["remaining_ms"].is_u64(), "{said}");
    let process = &lock["process"];
    assert_eq!((&process["service"], &process["connected"]), (&"checkout".into(), &true.into()));
    let held_since = lock["held_since"].as_str().unwrap();
    assert!(held_since.ends_with('Z') && held_since.len() == 24, "{held_since}");
    drop(running);
}

/// A script that asks whether a lock is held is not misled, and a person sees what is there.
#[test]
fn data_that_are_no_lock_are_shown_with_a_code_of_their_own() {
    let server = Server::start();
    server.admin().command::<()>(&["LPUSH", "disLock:list", "data"]);
    let (code, said, why) = with(&server.url(), &["show", "list"]);
    assert!(code == 2 && said.contains("holder   data that is no lock\n"), "{said}");
    assert!(why.contains("`list` holds data that is no lock"), "{why}");
    let (code, lock) = json(&server.url(), &["show", "list"]);
    assert_eq!((code, &lock["kind"]), (2, &"no-lock".into()));
}

#[test]
fn the_kind_is_shown_where_there_is_another_one() {
    let server = Server::start();
    let holder = "0123456789abcdef.1764000000000000";
    for (value, kind) in [
        (holder.to_owned(), None),
        (format!("~{holder}"), Some("kept-by-min-hold")),
        ("another".to_owned(), Some("foreign")),
    ] {
        server.admin().set("disLock:k", &value);
        let (_, said, _) = with(&server.url(), &["show", "k"]);
        let shown = said.lines().find_map(|line| line.strip_prefix("kind     "));
        assert_eq!(shown, kind, "{said}");
    }
}

#[test]
fn a_process_is_unknown_where_the_server_hides_it() {
    let rules = "on >secret ~* &* +@all -client|list";
    let server = Server::builder().user("app", rules).start();
    let holder = service(&server, "shop", "order:7", &[]);
    let url = server.url_with("app", "secret", 0);
    let (code, said, _) = with(&url, &["show", "order:7"]);
    assert!(code == 0 && said.contains("process  unknown\n"), "{said}");
    let (_, lock) = json(&url, &["ls"]);
    assert_eq!(lock["process"]["connected"], Value::Null);
    drop(holder);
}

#[test]
fn a_holder_without_a_connection_is_not_connected() {
    let server = Server::start();
    server.admin().set("disLock:order:7", "0123456789abcdef.1764000000000000 gone");
    let (_, said, _) = with(&server.url(), &["ls"]);
    let row: Vec<_> =
        said.lines().nth(1).unwrap().split("  ").filter(|it| !it.is_empty()).collect();
    let row: Vec<_> = row.into_iter().map(str::trim).collect();
    assert_eq!(row[..3], ["order:7", "gone", "not connected"], "{said}");
    assert_eq!(row[4].trim(), "no end");
    let (_, listed) = json(&server.url(), &["ls"]);
    assert_eq!(listed["process"]["connected"], false);
}

#[test]
fn a_check_ends_with_one_where_something_is_wrong() {
    let server = Server::builder().config("maxmemory-policy", "allkeys-lru").start();
    let url = server.url();
    assert_eq!(with(&url, &["check"]).0, 0);
    // Its replies have other types there.
    for url in [&url, &format!("{url}?protocol=resp3")] {
        let (code, said, _) = with(url, &["check", "--strict"]);
        assert!(code == 1 && said.contains("maxmemory-policy allkeys-lru"), "{said}");
    }
    let (code, report) = json(&url, &["check"]);
    assert_eq!((code, &report["schema"], &report["ok"]), (0, &1.into(), &true.into()));
    server.kill();
    let (code, said, _) = with(&url, &["check"]);
    assert!(code == 1 && said.contains("not ok"), "{said}");
    assert_eq!(with(&url, &["check", "--strict"]).0, 1);
}

#[test]
fn a_message_about_a_free_lock_shows_no_settings_of_the_url() {
    let server = Server::start();
    let (code, _, why) = with(&format!("{}?prefix=shop:", server.url()), &["show", "a"]);
    assert!(code == 3 && !why.contains('?') && !why.contains("prefix="), "{why}");
}

#[test]
fn a_check_as_a_reader_prints_the_line_that_is_missing() {
    let rules =
        "on >secret %R~disLock:* %R~lockable:* +scan +getrange +pttl +dbsize +time +client|list";
    let server = Server::builder().user("reader", rules).start();
    let url = server.url_with("reader", "secret", 0);
    let (code, said, _) = with(&url, &["check", "--as", "reader"]);
    assert_eq!((code, said.matches("ACL SETUSER").count()), (1, 1), "{said}");
    assert!(
        said.ends_with("`ACL SETUSER reader %R~lockable:* +llen +lrange +pubsub|numsub`\n"),
        "{said}"
    );
    server.admin().command::<()>(&[
        "ACL",
        "SETUSER",
        "reader",
        "+llen",
        "+lrange",
        "+pubsub|numsub",
    ]);
    let (code, said, _) = with(&url, &["check", "--as", "reader"]);
    assert!(code == 0 && said.contains(": ok (errors: 0, warnings: 0, info: 0)"), "{said}");
    let (code, said, _) = with(&url, &["check"]);
    assert!(code == 1 && said.contains("no lock can be acquired"), "{said}");
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let (server, count) = (Server::start(), 20_000);
    let admin = server.admin();
    let make = "for i = 1, ARGV[1] do redis.call('SET', 'disLock:' .. i, 'another') end";
    admin.command::<()>(&["EVAL", make, "0", &count.to_string()]);
    for (options, first) in [("", "KEY"), ("--json", "{")] {
        admin.reset_statistics();
        let pipe = format!("\"$0\" \"$@\" ls {options} | head -1; echo ${{PIPESTATUS[0]}}");
        let (_, said, why) = outcome(&mut script("bash", &server.url(), &pipe));
        let (line, code) = said.split_once('\n').unwrap();
        assert!(line.starts_with(first) && code == "0\n" && why.is_empty(), "{said}{why}");
        // No more than fits into the pipe; a page has 250 keys.
        let pages = admin.command_calls("scan");
        assert!(pages < count / 250 / 2, "{pages} pages");
    }
}

#[test]
fn a_clock_that_differs_is_said_with_the_times() {
    if !clock::can_be_set() {
        return;
    }
    let server = Server::builder().clock().start();
    server.admin().set("disLock:order:7", "another");
    let clocks = || {
        let (_, said, _) = with(&server.url(), &["show", "order:7"]);
        said.lines().find(|line| line.starts_with("clocks ")).map(str::to_owned)
    };
    assert_eq!(clocks(), None);
    server.set_clock_back(std::time::Duration::from_secs(7_200));
    // A little less, or more.
    let line = clocks().unwrap();
    assert!(line.contains(" differ by 2h") || line.contains(" differ by 1h59m"), "{line}");
}
