//! Permits as an operator sees them: locks with numbers, and one queue for all.

use lockable_tests::{Server, wait};
use serde_json::Value;

use super::holders::service;
use crate::program::{LIMIT, Running, id, json, listening, queued_for_permits, with};

/// Three services with the permits of `export`, and one that waits for the first that is free.
struct Exports {
    server: Server,
    holders: Vec<Running>,
    waiter: Running,
}

fn exports() -> Exports {
    let server = Server::start();
    let names = ["one", "two", "three"];
    let options = |id| ["--permits", "3", "--request-id", id];
    let start = |id| service(&server, "exporter", "export", &options(id));
    let holders = names.map(start).into();
    let waits = ["--permits", "3", "--wait", "--request-id", "four"];
    let waiter = service(&server, "exporter", "export", &waits);
    queued_for_permits(&server, "export", 1);
    listening(&server, 3);
    Exports { server, holders, waiter }
}

#[test]
fn a_listing_has_each_permit_with_its_holder() {
    let Exports { server, .. } = &exports();
    let (code, listed, _) = with(&server.url(), &["ls", "{export}#*"]);
    let rows: Vec<Vec<_>> =
        listed.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    let heads: Vec<_> = rows.iter().map(|row| (row[0], row[1], *row.last().unwrap())).collect();
    assert_eq!(code, 0);
    let mut sorted = heads.clone();
    sorted.sort_unstable();
    assert_eq!(
        sorted,
        [("{export}#1", "one", "1"), ("{export}#2", "two", "1"), ("{export}#3", "three", "1")],
        "{listed}"
    );
    let (_, all, _) = with(&server.url(), &["ls"]);
    assert_eq!(all.lines().count(), 4, "{all}");
    let (_, all, _) = with(&server.url(), &["ls", "--prefix", ""]);
    assert!(!all.contains("queue") && all.contains("disLock:{export}#1"), "{all}");
}

#[test]
fn each_permit_shows_the_queue_of_all() {
    let Exports { server, .. } = &exports();
    for (number, holder) in [(1, "one"), (2, "two"), (3, "three")] {
        let (code, shown) = json(&server.url(), &["show", &format!("{{export}}#{number}")]);
        assert_eq!((code, &shown["request_id"], &shown["waiting"]), (0, &holder.into(), &1.into()));
        let queue: Vec<_> = shown["queue"].as_array().unwrap().iter().collect();
        assert_eq!(queue.len(), 1, "{shown}");
        assert_eq!(queue[0]["request_id"], "four");
        assert_eq!(queue[0]["listening"], true);
    }
}

#[test]
fn a_release_stops_the_holder_of_that_permit_alone() {
    let Exports { server, holders, mut waiter } = exports();
    let (code, said, _) = with(&server.url(), &["release", "{export}#2", "--grace", "1m"]);
    assert!(code == 0 && said.contains("{export}#2: released by "), "{said}");
    assert!(said.contains("; next: four, exporter@"), "{said}");
    let alive: Vec<_> = holders.iter().map(Running::is_alive).collect();
    assert_eq!(alive, [true, false, true]);
    assert!(waiter.line().parse::<i32>().is_ok());
    let (_, shown) = json(&server.url(), &["show", "{export}#2"]);
    assert_eq!(shown["request_id"], "four");
}

#[test]
fn a_permit_that_is_taken_away_goes_to_the_first_waiter() {
    let Exports { server, holders, mut waiter } = exports();
    let hold = id(&server, "{export}#3");
    let arguments = ["release", "{export}#3", "--force", "--id", &hold];
    let (code, forced) = json(&server.url(), &arguments);
    assert_eq!((code, &forced["outcome"]), (0, &"forced".into()), "{forced}");
    assert!(waiter.line().parse::<i32>().is_ok());
    wait::until(LIMIT, || !holders[2].is_alive());
    assert!(holders[..2].iter().all(Running::is_alive));
    let (_, shown) = json(&server.url(), &["show", "{export}#3"]);
    assert_eq!((&shown["request_id"], &shown["waiting"]), (&"four".into(), &0.into()));
    assert_eq!(forced["next"]["request_id"], "four", "{forced}");
    assert_ne!(forced["next"], Value::Null);
}
