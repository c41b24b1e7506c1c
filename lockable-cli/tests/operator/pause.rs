//! Keeping a lock taken without a process, and giving it back.

use std::process::Stdio;

use lockable_tests::{Cluster, Server, wait};
use rustix::process::Signal;

use super::holders::{service, service_at, shop};
use super::topologies::key_at;
use crate::program::{
    LIMIT, Running, id, json, listening, lockable, outcome, queued, queued_for_permits, run, send,
    with,
};

/// No pause of these waits for so long.
const LIMITED: [&str; 2] = ["--wait", "2m"];

#[test]
fn a_pause_outlives_its_command_until_it_is_resumed() {
    let server = Server::start();
    let pause = ["pause", "job", "--for", "30m", "--reason", "deploy \u{1b}[31m42"];
    let (code, said, why) = with(&server.url(), &pause);
    assert!(code == 0 && said.starts_with("job: paused until 2"), "{said}{why}");
    assert!(said.ends_with(&format!("Z: deploy {}42\n", r"\u{1b}[31m")), "{said}");
    let (code, shown) = json(&server.url(), &["show", "job"]);
    assert_eq!((code, &shown["kind"]), (0, &"paused".into()));
    assert!(shown["remaining_ms"].as_u64().unwrap() > 1_700_000 && shown["process"].is_null());
    let (_, shown, _) = with(&server.url(), &["show", "job"]);
    assert!(shown.contains("\nholder   paused until 2") && !shown.contains("process"), "{shown}");
    let (code, _, why) = outcome(&mut run(&server.url(), &[], "true"));
    assert!(code == 75 && why.contains("the lock is paused until 2"), "{why}");
    // The server may answer a place in the queue later than that.
    let limited = || outcome(&mut run(&server.url(), &["--wait", "200ms"], "true"));
    wait::until(LIMIT, || matches!(limited(), (75, _, why) if why.contains("the lock is paused")));
    // No request to stop ends it, and no second pause.
    let (code, _, why) = with(&server.url(), &["release", "job"]);
    assert!(code == 4 && why.contains("lockable resume job"), "{why}");
    let (code, _, why) = with(&server.url(), &["pause", "job", "--for", "1h"]);
    assert!(code == 75 && why.contains("lockable resume job"), "{why}");
    let waiter = service(&server, "cart", "job", &["--wait", "--request-id", "cart-12"]);
    queued(&server, "job");
    let (code, said, why) = with(&server.url(), &["resume", "job"]);
    assert!(code == 0 && said.starts_with("job: resumed; next: cart-12, cart@"), "{said}{why}");
    let (code, _, why) = with(&server.url(), &["resume", "job"]);
    assert!(code == 3 && why.contains("is not paused: "), "{why}");
    waiter.end();
    assert_eq!(with(&server.url(), &["resume", "job"]).0, 3);
}

#[test]
fn a_pause_waits_behind_those_who_wait() {
    let server = Server::start();
    let holder = service(&server, "shop", "order:7", &[]);
    let waiter = service(&server, "cart", "order:7", &["--wait"]);
    queued(&server, "order:7");
    let (code, _, why) = with(&server.url(), &["pause", "order:7", "--for", "1h", "--wait", "1ms"]);
    assert!(code == 75 && why.contains("waits for `order:7`"), "{why}");
    let pause = ["pause", "order:7", "--for", "1h", "--json"];
    let pause = lockable(&server.url()).args(pause).stdout(Stdio::piped()).spawn().unwrap();
    let admin = server.admin();
    let queue = "lockable:queue:{disLock:order:7}";
    wait::until(LIMIT, || admin.command::<i64>(&["LLEN", queue]) == 2);
    let first = id(&server, "order:7");
    holder.end();
    wait::until(LIMIT, || id(&server, "order:7") != first);
    assert_eq!(json(&server.url(), &["show", "order:7"]).1["kind"], "exclusive");
    waiter.end();
    let said = String::from_utf8(pause.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains(r#""kind":"paused""#) && said.contains(r#""reason":"by "#), "{said}");
}

#[test]
fn a_pause_that_is_interrupted_leaves_the_queue() {
    let server = Server::start();
    let holder = service(&server, "shop", "order:7", &[]);
    let pause = ["pause", "order:7", "--for", "1h"];
    let mut pause = lockable(&server.url()).args(pause).spawn().unwrap();
    queued(&server, "order:7");
    // Ctrl-C is ignored where this test was started in the background.
    send(i32::try_from(pause.id()).unwrap(), Signal::TERM);
    assert_eq!(pause.wait().unwrap().code(), Some(143));
    let queue = "lockable:queue:{disLock:order:7}";
    assert_eq!(server.admin().command::<i64>(&["EXISTS", queue]), 0);
    holder.end();
}

#[test]
fn a_pause_that_begins_now_takes_the_holders_place() {
    let (server, holder) = shop();
    let waiter = service(&server, "cart", "order:7", &["--wait"]);
    queued(&server, "order:7");
    let pause = ["pause", "order:7", "--for", "1h", "--now", "--grace", "1m", "--reason", "mend"];
    let (code, said, why) = with(&server.url(), &pause);
    assert!(code == 0 && said.contains("Z: mend"), "{said}{why}");
    let (code, why) = holder.end();
    assert!(code == Some(124) && why.contains("asked the holder to stop: mend"), "{why}");
    // The one who waited has not begun.
    queued(&server, "order:7");
    assert_eq!(json(&server.url(), &["show", "order:7"]).1["kind"], "paused");
    let (code, said, why) = with(&server.url(), &["pause", "order:7", "--for", "2h", "--now"]);
    assert!(code == 0 && said.contains("order:7: paused until"), "{said}{why}");
    assert_eq!(with(&server.url(), &["resume", "order:7"]).0, 0);
    wait::until(LIMIT, || json(&server.url(), &["show", "order:7"]).1["kind"] == "exclusive");
    waiter.end();
}

/// Who waits for all permits has the gate before them, and keeps all others out.
#[test]
fn a_pause_of_permits_comes_before_a_call_for_all_that_waits() {
    let server = Server::start();
    let holder = service(&server, "exporter", "export", &["--permits", "2"]);
    let all = service(&server, "deploy", "export", &["--permits", "all:2", "--wait"]);
    listening(&server, 2);
    let pause = ["pause", "export", "--permits", "2", "--for", "1h", "--now", "--grace", "1m"];
    let (code, said, why) = with(&server.url(), &[&pause[..], &LIMITED].concat());
    assert!(code == 0 && said.matches("paused until").count() == 2, "{said}{why}");
    assert_eq!(holder.end().0, Some(124));
    let (code, why) = all.end();
    assert!(code == Some(124) && why.contains("asked the holder to stop"), "{why}");
}

#[test]
fn a_gate_that_is_not_given_away_ends_a_pause_of_permits() {
    let server = Server::start();
    server.admin().set("disLock:{export}#0", "another");
    let pause = ["pause", "export", "--permits", "2", "--for", "1h", "--now"];
    let (code, _, why) = with(&server.url(), &[&pause[..], &LIMITED].concat());
    assert!(code == 4 && why.contains("--force --delay"), "{why}");
}

/// A holder that does not stop before its input ends.
fn stubborn(server: &Server) -> Running {
    let script = "trap '' TERM; echo $$; read line";
    let holder = run(&server.url(), &["--expire", "1h", "--kill-after", "10m"], script);
    let holder = Running::of(holder, 1);
    listening(server, 1);
    holder
}

#[test]
fn a_later_pause_that_begins_now_takes_the_place_of_one_that_waits() {
    for options in [&[][..], &["--now", "--grace", "5m"]] {
        let server = Server::start();
        let holder = stubborn(&server);
        let pause = |options: &[&str]| {
            let mut pause = lockable(&server.url());
            pause.args(["pause", "job", "--for", "1h"]).args(LIMITED).args(options);
            pause.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let earlier = pause(options);
        queued(&server, "job");
        let later = pause(&["--now", "--grace", "5m", "--reason", "the later"]);
        let pid = format!(":{}", later.id());
        wait::until(LIMIT, || {
            let (_, shown) = json(&server.url(), &["show", "job"]);
            let first = shown["queue"][0]["request_id"].as_str().unwrap();
            shown["waiting"] == 2 && first.ends_with(&pid)
        });
        holder.end();
        assert_eq!(later.wait_with_output().unwrap().status.code(), Some(0));
        let earlier = earlier.wait_with_output().unwrap();
        let why = String::from_utf8(earlier.stderr).unwrap();
        assert_eq!(earlier.status.code(), Some(75), "{why}");
        assert!(why.contains("another pause has come first (paused until "), "{why}");
        assert_eq!(json(&server.url(), &["show", "job"]).1["reason"], "the later");
    }
}

#[test]
fn a_pause_that_gives_up_says_what_it_leaves() {
    let server = Server::start();
    let _holder = stubborn(&server);
    let pause = ["pause", "job", "--for", "1h", "--now", "--grace", "5m", "--wait", "100ms"];
    let (code, _, why) = with(&server.url(), &pause);
    assert!(code == 75 && why.contains("nothing is paused; its holder may have been "), "{why}");
    assert_eq!(json(&server.url(), &["show", "job"]).1["kind"], "exclusive");
}

#[test]
fn a_pause_that_cannot_be_so_short_asks_no_one() {
    let (server, holder) = shop();
    let (code, _, why) = with(&server.url(), &["pause", "order:7", "--for", "9ms", "--now"]);
    assert!(code == 2 && why.contains("at least 10ms"), "{why}");
    assert!(holder.is_alive());
}

#[test]
fn a_lock_and_its_permits_are_resumed_together() {
    let server = Server::start();
    assert_eq!(with(&server.url(), &["pause", "export", "--for", "1h"]).0, 0);
    assert_eq!(with(&server.url(), &["pause", "export", "--for", "1h", "--permits", "2"]).0, 0);
    let (code, said, _) = with(&server.url(), &["resume", "export"]);
    assert!(code == 0 && said.matches(": resumed").count() == 3, "{said}");
    assert_eq!(with(&server.url(), &["resume", "export"]).0, 3);
}

#[test]
fn a_holder_that_does_not_stop_is_not_paused() {
    let server = Server::start();
    server.admin().command::<()>(&["SET", "disLock:order:7", "another", "PX", "600000"]);
    let (code, said, why) = with(&server.url(), &["pause", "order:7", "--for", "1h", "--now"]);
    assert_eq!((code, said.as_str()), (4, ""));
    assert!(why.contains("--force --delay 3600s --reason"), "{why}");
    assert_eq!(server.admin().command::<i64>(&["EXISTS", "lockable:queue:{disLock:order:7}"]), 0);
    assert_eq!(server.admin().get("disLock:order:7").as_deref(), Some("another"));
}

#[test]
fn a_pause_that_begins_now_takes_the_place_of_a_minimum_hold() {
    let server = Server::start();
    let options = ["--expire", "1h", "--min-hold", "1h"];
    assert_eq!(outcome(&mut run(&server.url(), &options, "true")).0, 0);
    assert_eq!(json(&server.url(), &["show", "job"]).1["kind"], "kept-by-min-hold");
    let (code, said, why) = with(&server.url(), &["pause", "job", "--for", "2h", "--now"]);
    assert!(code == 0 && said.contains("job: paused until"), "{said}{why}");
}

#[test]
fn a_pause_takes_a_whole_day_and_a_key_that_looks_like_a_pattern() {
    let server = Server::start();
    assert_eq!(with(&server.url(), &["pause", "day", "--for", "24h"]).0, 0);
    let (code, said, why) = with(&server.url(), &["pause", "a*", "--exact", "--for", "1h"]);
    assert!(code == 0 && said.starts_with("a*: paused until"), "{said}{why}");
}

#[test]
fn a_lock_that_is_taken_away_with_a_delay_is_no_ones_for_so_long() {
    let (server, holder) = shop();
    let waiter = service(&server, "cart", "order:7", &["--wait"]);
    queued(&server, "order:7");
    let hold = id(&server, "order:7");
    let force = ["release", "order:7", "--id", &hold, "--force", "--delay", "1h"];
    let (code, said, why) = with(&server.url(), &force);
    assert!(code == 0 && said.contains(&format!("taken away from {hold}")), "{said}{why}");
    assert!(said.contains("no one gets it for 1h") && !said.contains("; next:"), "{said}");
    wait::until(LIMIT, || !holder.is_alive());
    assert_eq!(holder.end().0, Some(124));
    let (_, shown) = json(&server.url(), &["show", "order:7"]);
    assert_eq!((&shown["kind"], &shown["waiting"]), (&"paused".into(), &1.into()));
    assert_eq!(with(&server.url(), &["resume", "order:7"]).0, 0);
    waiter.end();
    let (code, _, why) = with(&server.url(), &["release", "order:7", "--delay", "1h"]);
    assert!(code == 2 && why.contains("--force"), "{why}");
}

#[test]
fn all_permits_of_a_key_are_paused_and_resumed() {
    let server = Server::start();
    let holder = service(&server, "exporter", "export", &["--permits", "3"]);
    listening(&server, 1);
    let pause = ["pause", "export", "--permits", "3", "--for", "1h", "--now", "--grace", "1m"];
    let (code, said, why) = with(&server.url(), &pause);
    assert!(code == 0 && said.matches("paused until").count() == 3, "{said}{why}");
    assert_eq!(holder.end().0, Some(124));
    let waiter = service(&server, "exporter", "export", &["--permits", "3", "--wait"]);
    queued_for_permits(&server, "export", 1);
    let (code, said, why) = with(&server.url(), &["resume", "export"]);
    assert!(code == 0 && said.matches(": resumed").count() == 3, "{said}{why}");
    waiter.end();
}

#[test]
fn a_release_of_many_leaves_pauses_alone() {
    let server = Server::start();
    assert_eq!(with(&server.url(), &["pause", "order:7", "--for", "1h"]).0, 0);
    let (code, _, why) = with(&server.url(), &["release", "order:*", "--yes"]);
    assert!(code == 3 && why.contains("1 paused"), "{why}");
    assert_eq!(json(&server.url(), &["show", "order:7"]).1["kind"], "paused");
}

#[test]
fn a_lock_of_a_cluster_is_paused_on_its_node() {
    let cluster = Cluster::builder().shards(2).replicas(0).start();
    let url = cluster.url();
    for master in cluster.first_masters() {
        let key = key_at(&cluster, master);
        let holder = service_at(&url, "shop", &key, &[]);
        let waiter = service_at(&url, "cart", &key, &["--wait"]);
        let waiting = || json(&url, &["show", &key]).1["waiting"] == 1;
        wait::until(LIMIT, waiting);
        let pause = ["pause", &key, "--for", "1h", "--now", "--grace", "1m"];
        let (code, said, why) = with(&url, &pause);
        assert!(code == 0 && said.contains("paused until"), "{said}{why}");
        assert_eq!(holder.end().0, Some(124));
        assert!(waiting(), "the next one has begun");
        assert_eq!(with(&url, &["resume", &key]).0, 0);
        waiter.end();
    }
}
