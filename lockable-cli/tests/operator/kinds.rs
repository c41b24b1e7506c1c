//! Which locks a listing shows: runs that are done are counted, and listed if they are asked for.

use std::collections::BTreeSet;

use lockable_tests::Server;
use serde_json::Value;

use super::watch::Watch;
use crate::program::{json, outcome, run, with};

/// A lock of each kind, and three runs that are done.
fn one_of_each() -> Server {
    let (server, token) = (Server::start(), "0123456789abcdef.1764000000000000");
    let admin = server.admin();
    for (name, value) in [
        ("exclusive", format!("{token} checkout-7")),
        ("kept-by-min-hold", format!("~{token} cron")),
        ("done", format!("~{token}! cron")),
        ("done:waited-for", format!("={token}! cron")),
        ("ticket", format!("@{token} cart")),
        ("paused", format!("|{token} 1764000000000 deploy")),
        ("foreign", "another".to_owned()),
    ] {
        admin.command::<()>(&["SET", &format!("disLock:{name}"), &value, "PX", "600000"]);
    }
    admin.command::<()>(&["RPUSH", "disLock:no-lock", "data"]);
    assert_eq!(outcome(&mut run(&server.url(), &["--once", "1h"], "true")).0, 0);
    server
}

/// The names that a listing has, in its order.
fn names(listed: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        serde_json::from_str::<Value>(line).unwrap()["name"].as_str().unwrap().to_owned()
    };
    listed.lines().map(name).collect()
}

const ALL: [&str; 9] = [
    "done",
    "done:waited-for",
    "exclusive",
    "foreign",
    "job",
    "kept-by-min-hold",
    "no-lock",
    "paused",
    "ticket",
];

#[test]
fn a_listing_leaves_out_what_is_done_and_says_how_many() {
    let server = one_of_each();
    let but_done = ["exclusive", "foreign", "kept-by-min-hold", "no-lock", "paused", "ticket"];
    for (arguments, expected, done) in [
        (&[][..], &but_done[..], 3),
        (&["--fast"], &but_done, 3),
        (&["d*"], &[], 2),
        (&["e*"], &["exclusive"], 0),
        (&["--kind", "all"], &ALL, 0),
        (&["--kind", "done"], &["done", "done:waited-for", "job"], 0),
        (&["--kind", "paused,ticket"], &["paused", "ticket"], 0),
        (&["--kind", "paused", "--kind", "foreign"], &["foreign", "paused"], 0),
        (&["--kind", "done", "d*"], &["done", "done:waited-for"], 0),
        (&["--kind", "exclusive,kept-by-min-hold,no-lock", "n*"], &["no-lock"], 0),
    ] {
        let words = [&["ls"], arguments].concat();
        let (code, said, why) = with(&server.url(), &[&words[..], &["--json"]].concat());
        let expected: BTreeSet<_> = expected.iter().map(|&name| name.to_owned()).collect();
        assert_eq!((code, names(&said)), (0, expected.clone()), "{arguments:?}: {why}");
        let note: Value = serde_json::from_str(&why).unwrap_or_default();
        assert_eq!(note["done"].as_u64().unwrap_or(0), done, "{arguments:?}: {why}");

        let (code, said, why) = with(&server.url(), &words);
        let rows = said.lines().skip(1).count();
        assert_eq!((code, rows), (0, expected.len()), "{arguments:?}: {said}{why}");
        assert_eq!(
            why.contains(&format!("not listed: {done} that ")),
            done > 0,
            "{arguments:?}: {why}"
        );
    }
}

#[test]
fn what_a_listing_offers_lists_what_it_left_out() {
    let server = one_of_each();
    let (_, _, why) = with(&server.url(), &["ls", "done*"]);
    assert!(why.contains("no lock `disLock:done*` is held on "), "{why}");
    let (_, offered) = why.trim_end().split_once("; see lockable ").unwrap();
    let words: Vec<_> = offered.split(' ').map(|word| word.trim_matches('\'')).collect();
    let (code, said, why) = with(&server.url(), &words);
    assert!(code == 0 && said.lines().count() == 3 && why.is_empty(), "{words:?}: {said}{why}");
}

#[test]
fn a_kind_that_none_has_or_that_there_is_not() {
    let server = Server::start();
    let (code, _, why) = with(&server.url(), &["ls", "--kind", "ticket,paused"]);
    assert!(
        code == 0 && why.contains("no lock `disLock:*` of the kind ticket or paused is held"),
        "{why}"
    );
    let (code, _, why) = with(&server.url(), &["ls", "--kind", "finished"]);
    assert!(code == 2 && why.contains("kept-by-min-hold"), "{why}");
}

/// What was counted is not asked to stop, and not taken away by a file that a listing wrote.
#[test]
fn a_run_that_is_done_outlives_the_release_of_a_listing() {
    let server = one_of_each();
    let (_, listed, _) = with(&server.url(), &["ls", "--json"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("held.json");
    let held: Vec<_> = listed.lines().filter(|line| !line.contains("no-lock")).collect();
    std::fs::write(&file, held.join("\n")).unwrap();
    let file = file.to_str().unwrap();
    let (code, said, why) = with(&server.url(), &["release", "--ids", file, "--force", "--yes"]);
    assert!(code == 0 && said.contains("5 taken away"), "{said}{why}");
    assert_eq!(json(&server.url(), &["show", "job"]).1["kind"], "done");
}

#[test]
fn a_watch_leaves_out_what_is_done_and_says_how_many() {
    let server = one_of_each();
    for (arguments, expected, done) in [
        (&["done*"][..], &[][..], 2),
        (&["*e*"], &["exclusive", "foreign", "kept-by-min-hold", "paused", "ticket"], 2),
        (&["done*", "--kind", "all"], &["done", "done:waited-for"], 0),
    ] {
        let words = [&["ls", "--watch=100ms", "--json"], arguments].concat();
        let mut watch = Watch::start(&server.url(), &words);
        let lines: String = expected.iter().map(|_| watch.line()).collect();
        assert_eq!(names(&lines), expected.iter().map(|&name| name.to_owned()).collect());
        if done > 0 {
            let note: Value = serde_json::from_str(&watch.complaint()).unwrap();
            assert_eq!(note["done"], done, "{note}");
        }
        watch.end();
    }
}

/// A success ends a hold; it does not fill the list.
#[test]
fn a_run_that_ends_well_is_gone_for_a_watch() {
    let (server, value) = (Server::start(), "0123456789abcdef.1764000000000000! cron");
    let set = |value: &str| {
        server.admin().command::<()>(&["SET", "disLock:nightly", value, "PX", "600000"]);
    };
    set(value);
    let mut watch = Watch::start(&server.url(), &["ls", "--watch=100ms", "--json"]);
    let mut changes = std::iter::repeat_with(|| {
        let change: Value = serde_json::from_str(&watch.line()).unwrap();
        change["change"].as_str().unwrap().to_owned()
    });
    assert_eq!(changes.next().unwrap(), "listed");
    set(&format!("~{value}"));
    assert_eq!(changes.next().unwrap(), "gone");
    watch.end();
}

/// As the guide has it for a key of this length.
#[test]
fn a_run_that_is_done_takes_few_bytes() {
    let (server, key) = (Server::start(), "disLock:report:2026-11-28");
    let name = key.strip_prefix("disLock:").unwrap();
    let words =
        ["run", "--key", name, "--once", "1h", "--request-id", "nightly-4711", "--", "true"];
    assert_eq!(with(&server.url(), &words).0, 0);
    let bytes: u64 = server.admin().command(&["MEMORY", "USAGE", key]);
    assert!(bytes <= 160, "{bytes} bytes");
}

/// A listing takes a second for each 100 000 keys.
#[test]
fn a_watch_says_that_its_first_look_lasts() {
    let server = Server::start();
    let fill = "for key = 1, 250000 do redis.call('SET', 'other:' .. key, '') end";
    server.admin().command::<()>(&["EVAL", fill, "0"]);
    for json in [&[][..], &["--json"]] {
        let words = [&["ls", "--watch=100ms"], json].concat();
        let mut watch = Watch::start(&server.url(), &words);
        let note = watch.complaint();
        assert!(
            note.contains("the first look lasts: ") && note.contains("% of 250000 keys scanned"),
            "{note}"
        );
        if json.is_empty() {
            assert!(watch.line().ends_with("Z\n"));
        }
        watch.end();
    }
}
