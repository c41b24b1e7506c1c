//! Waiting for the end of a hold without the lock's queue.

use std::process::Stdio;

use lockable_tests::{Server, wait};
use rustix::process::Signal;

use super::holders::service;
use crate::program::{LIMIT, id, json, listening, lockable, outcome, queued, run, with};

#[test]
fn a_wait_ends_with_the_hold_and_is_in_no_queue() {
    let server = Server::start();
    let holder = service(&server, "shop", "order:7", &[]);
    let options = ["--request-id", "cart-12", "--wait"];
    let waiter = service(&server, "cart", "order:7", &options);
    queued(&server, "order:7");
    let first = id(&server, "order:7");
    let admin = server.admin();
    admin.reset_statistics();
    let mut command = lockable(&server.url());
    let child = command.args(["wait", "order:7"]).stdout(Stdio::piped()).spawn().unwrap();
    wait::until(LIMIT, || admin.command_calls("getrange") >= 2);
    assert_eq!(admin.command::<i64>(&["LLEN", "lockable:queue:{disLock:order:7}"]), 1);
    holder.end();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(said.starts_with(&format!("order:7: {first} no longer has it after ")), "{said}");
    assert!(said.contains("; next: cart-12, cart@"), "{said}");
    drop(waiter);
}

/// Goal: an end that the server reports is seen before the look that would see it.
#[test]
fn an_end_that_is_reported_is_seen_at_once() {
    let server = Server::start();
    server.admin().set("disLock:a", "another");
    let mut command = lockable(&server.url());
    let child = command.args(["wait", "a", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let admin = server.admin();
    wait::until(LIMIT, || admin.command_calls("getrange") >= 2);
    assert_eq!(admin.command_calls("client|caching"), 2, "its value and its queue are tracked");
    admin.del("disLock:a");
    let output = child.wait_with_output().unwrap();
    let end: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(end["after_ms"].as_u64() < Some(5_000), "{end}");
}

#[test]
fn a_wait_has_a_limit() {
    let server = Server::start();
    server.admin().command::<()>(&["SET", "disLock:a", "another", "PX", "60000"]);
    let (code, error) = json(&server.url(), &["wait", "a", "--for", "0s"]);
    assert_eq!((code, &error["error"], &error["name"]), (75, &"busy".into(), &"a".into()));
    let (code, said, why) = with(&server.url(), &["wait", "a", "--for", "100ms"]);
    assert_eq!((code, said.as_str()), (75, ""));
    assert!(why.contains("lock `a`: the lock is still held after 0.1s, with the id "), "{why}");
}

#[test]
fn a_lock_that_is_free_is_not_waited_for() {
    let server = Server::start();
    let (code, said, _) = with(&server.url(), &["wait", "a"]);
    assert_eq!((code, said.as_str()), (0, "a: free\n"));
    let (code, end) = json(&server.url(), &["wait", "a", "--free"]);
    assert_eq!((code, &end["outcome"], &end["key"]), (0, &"free".into(), &"disLock:a".into()));
}

#[test]
fn free_is_when_no_one_waits_either() {
    let server = Server::start();
    server.admin().set("disLock:a", "another");
    let waiter = service(&server, "shop", "a", &["--wait"]);
    queued(&server, "a");
    // It stays in the queue, and sees later that the lock is free.
    waiter.send(Signal::STOP);
    server.admin().del("disLock:a");
    let (code, _, why) = with(&server.url(), &["wait", "a", "--free", "--for", "0s"]);
    assert!(code == 75 && why.contains("no one has the lock, and 1 still wait"), "{why}");
    assert_eq!(with(&server.url(), &["wait", "a"]).0, 0);
    waiter.send(Signal::CONT);
    waiter.end();
    assert_eq!(with(&server.url(), &["wait", "a", "--free"]).0, 0);
}

/// Its entry stays until the queue ends.
#[test]
fn a_process_that_has_ended_does_not_wait() {
    let rules = "on >secret ~* &* +@all -pubsub";
    let server = Server::builder().user("app", rules).start();
    let (url, blind) = (server.url(), server.url_with("app", "secret", 0));
    let entry = "1000 0123456789abcdef.1764000000000000";
    let queue = ["RPUSH", "lockable:queue:{disLock:a}", entry];
    server.admin().command::<()>(&queue);
    assert_eq!(with(&url, &["wait", "a", "--free", "--for", "0s"]).0, 0);
    // Who may not ask for listeners counts all.
    assert_eq!(with(&blind, &["wait", "a", "--free", "--for", "0s"]).0, 75);
    server.admin().set("disLock:a", "another");
    for command in [&["ls"][..], &["show", "a"]] {
        assert_eq!(json(&url, command).1["waiting"], 0, "{command:?}");
        assert_eq!(json(&blind, command).1["waiting"], 1, "{command:?}");
    }
}

#[test]
fn a_run_that_is_done_is_waited_for_on_request_alone() {
    let server = Server::start();
    assert_eq!(outcome(&mut run(&server.url(), &["--once", "1h"], "true")).0, 0);
    let (code, said, _) = with(&server.url(), &["wait", "job"]);
    assert!(code == 0 && said.starts_with("job: its run is done; `once` keeps it for "), "{said}");
    let (code, end) = json(&server.url(), &["wait", "job"]);
    assert!(code == 0 && end["outcome"] == "done" && end["kept_ms"].is_u64(), "{end}");
    assert_eq!(with(&server.url(), &["wait", "job", "--free", "--for", "0s"]).0, 75);
}

#[test]
fn a_holder_that_min_hold_outlasts_is_done() {
    let server = Server::start();
    let holder = service(&server, "cron", "nightly", &["--expire", "1h", "--min-hold", "1h"]);
    listening(&server, 1);
    let mut command = lockable(&server.url());
    let child = command.args(["wait", "nightly"]).stdout(Stdio::piped()).spawn().unwrap();
    holder.end();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    let (code, said, _) = with(&server.url(), &["wait", "nightly"]);
    assert!(code == 0 && said.contains("`min_hold` keeps it for "), "{said}");
}

#[test]
fn a_wait_outlives_a_restart() {
    let server = Server::start();
    server.admin().set("disLock:a", "another");
    let mut command = lockable(&server.url());
    command.args(["wait", "a"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let admin = server.admin();
    wait::until(LIMIT, || admin.command_calls("getrange") > 0);
    server.kill();
    server.restart();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}
