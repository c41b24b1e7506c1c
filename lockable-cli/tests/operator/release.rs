//! Asking, and taking away.

use lockable_tests::{Server, wait};
use rustix::process::Signal;
use serde_json::Value;

use super::holders::{service, shop};
use crate::program::{LIMIT, id, json, listening, lockable, outcome, queued, run, with};

#[test]
fn a_holder_that_is_asked_ends_before_its_lock() {
    let (server, holder) = shop();
    let (code, said, _) =
        with(&server.url(), &["release", "order:7", "--grace", "1m", "--reason", "a \u{1b}[31m"]);
    assert!(!holder.is_alive());
    assert_eq!(code, 0);
    assert!(said.contains("order:7: released by "), "{said}");
    let (code, why) = holder.end();
    assert_eq!(code, Some(124));
    assert!(why.contains("asked the holder to stop") && !why.contains('\u{1b}'), "{why}");
}

#[test]
fn a_call_that_waits_for_the_rest_of_its_locks_is_stopped() {
    let server = Server::start();
    server.admin().set("disLock:b", "another");
    let waiter = service(&server, "shop", "a", &["--key", "b", "--wait", "--json"]);
    listening(&server, 1);
    let (code, said, why) = with(&server.url(), &["release", "a", "--grace", "1m"]);
    assert!(code == 0 && said.starts_with("a: released by "), "{said}{why}");
    let (code, why) = waiter.end();
    let error: Value = serde_json::from_str(&why).unwrap();
    assert_eq!((code, &error["error"]), (Some(124), &"revoked".into()), "{why}");
}

#[test]
fn a_lock_that_min_hold_keeps_is_said() {
    let server = Server::start();
    let options = ["--expire", "1h", "--min-hold", "1h"];
    let holder = service(&server, "cron", "nightly", &options);
    listening(&server, 1);
    let (code, said, _) = with(&server.url(), &["release", "nightly", "--grace", "1m"]);
    assert!(code == 0 && said.contains("it stays taken for "), "{said}");
    assert_eq!(holder.end().0, Some(124));
    let id = id(&server, "nightly");
    let (code, forced) = json(&server.url(), &["release", "nightly", "--id", &id, "--force"]);
    assert_eq!((code, &forced["outcome"]), (0, &"forced".into()));
    assert_eq!(server.admin().get("disLock:nightly"), None);
}

#[test]
fn a_run_that_is_done_is_repeated_on_request() {
    let server = Server::start();
    let run = || outcome(&mut run(&server.url(), &["--once", "1h"], "echo ran")).1;
    assert_eq!((run().as_str(), run().as_str()), ("ran\n", ""));
    let (_, listed, _) = with(&server.url(), &["ls", "--kind", "done"]);
    assert!(listed.contains("done") && listed.contains("59m"), "{listed}");
    let (code, shown) = json(&server.url(), &["show", "job"]);
    assert_eq!((code, &shown["kind"]), (0, &"done".into()));
    assert!(shown["remaining_ms"].as_u64().unwrap() > 3_500_000);
    let (code, said, _) = with(&server.url(), &["release", "job"]);
    assert!(code == 0 && said.contains("job: is not done any more"), "{said}");
    assert_eq!((run().as_str(), run().as_str()), ("ran\n", ""));
    let (code, released) = json(&server.url(), &["release", "job"]);
    assert_eq!((code, &released["outcome"]), (0, &"undone".into()));
}

#[test]
fn a_ticket_is_no_dead_holder_and_released_without_force() {
    let server = Server::start();
    let admin = server.admin();
    let ticket = "@0a1b2c3456789abc.1764000000123456 cart-12";
    let put = || admin.command::<()>(&["SET", "disLock:order:7", ticket, "PX", "60000"]);
    put();
    let (_, listed, _) = with(&server.url(), &["ls"]);
    let line = listed.lines().find(|line| line.starts_with("order:7 ")).unwrap();
    assert!(line.contains(" ticket, until 20") && !line.contains("not connected"), "{listed}");
    let (_, shown, _) = with(&server.url(), &["show", "order:7"]);
    assert!(shown.contains("holder   ticket, until 20") && !shown.contains("process"), "{shown}");
    let (code, shown) = json(&server.url(), &["show", "order:7"]);
    assert_eq!((code, &shown["kind"], &shown["process"]), (0, &"ticket".into(), &Value::Null));
    assert_eq!(shown["request_id"], "cart-12");
    let (code, said, _) = with(&server.url(), &["release", "order:7"]);
    assert!(code == 0 && said.contains("cannot be redeemed any more"), "{said}");
    assert_eq!(admin.get("disLock:order:7"), None);
    put();
    let (code, released) = json(&server.url(), &["release", "order:7"]);
    assert_eq!((code, &released["outcome"]), (0, &"released".into()));
}

#[test]
fn who_cannot_be_asked_is_said_with_the_line_that_forces() {
    let server = Server::start();
    server.admin().command::<()>(&["SET", "disLock:order:7", "another", "PX", "60000"]);
    let (code, said, why) = with(&server.url(), &["release", "order:7", "--reason", "it's old"]);
    assert_eq!((code, said.as_str()), (4, ""));
    let line = format!(
        r"lockable --timeout 5m release order:7 --reason 'it'\''s old' --id {} --force",
        id(&server, "order:7")
    );
    assert!(why.contains("cannot be asked to stop: it is another library's lock"), "{why}");
    assert!(why.contains("ends by itself in ") && why.trim_end().ends_with(&line), "{why}");
    assert_eq!(server.admin().get("disLock:order:7").as_deref(), Some("another"));
}

#[test]
fn the_true_cause_is_named_where_it_is_known() {
    let (server, holder) = shop();
    let (url, admin) = (server.url(), server.admin());
    let gone = "abcdef0123456789.1700000000000000";
    admin.command::<()>(&["SET", "disLock:gone", gone, "PX", "60000"]);
    admin.command::<()>(&["SET", "disLock:kept", &format!("~{gone}"), "PX", "60000"]);
    admin.command::<()>(&["SET", "disLock:endless", gone]);
    for (arguments, causes) in [
        (
            &["gone"][..],
            &[
                "its process is not listed among the connections of this server",
                "with two holders if that process is alive",
            ][..],
        ),
        (&["kept"], &["it has released the lock, which is kept by `min_hold`"]),
        (&["endless"], &["the lock never ends by itself"]),
        (&["order:7", "--namespace", "other"], &["shop@", "another --namespace than `other`"]),
    ] {
        // No one answers, however long it is waited for.
        let (code, _, why) = with(&url, &[&["release", "--grace", "50ms"], arguments].concat());
        assert!(code == 4 && causes.iter().all(|cause| why.contains(cause)), "{why}");
        assert!(!why.contains("another library"), "{why}");
    }
    assert!(holder.is_alive());
}

/// Goal: the line that takes the lock away comes behind what is known of a holder that hangs.
#[test]
fn a_frozen_holder_is_said_to_end_by_itself_first() {
    let server = Server::start();
    let holder = service(&server, "shop", "order:7", &["--expire", "1h"]);
    listening(&server, 1);
    let pid = holder.id().to_string();
    holder.send(Signal::STOP);
    let (code, _, why) = with(&server.url(), &["release", "order:7", "--grace", "0s"]);
    assert_eq!(code, 4, "{why}");
    let said = [
        "still has the lock after",
        "ends by itself in ",
        "it was not renewed in the ",
        "end its process, `shop` on ",
        &format!("with the pid {pid}"),
        " --force",
    ];
    let places: Vec<_> = said.iter().map(|words| why.find(words)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}: {why}");
    let (code, error) = json(&server.url(), &["release", "order:7", "--grace", "0s"]);
    assert_eq!((code, &error["renewed"]), (4, &false.into()));
    holder.send(Signal::CONT);
}

#[test]
fn what_is_no_lock_is_refused_at_once() {
    let server = Server::start();
    server.admin().command::<()>(&["LPUSH", "disLock:list", "data"]);
    let id = id(&server, "list");
    for arguments in [["release", "list"].as_slice(), &["release", "list", "--force", "--id", &id]]
    {
        let (code, _, why) = with(&server.url(), arguments);
        assert!(code == 2 && why.contains("`list` holds data that is no lock"), "{why}");
        assert!(!why.contains("--force"), "{why}");
    }
}

#[test]
fn a_lock_of_another_library_is_taken_without_its_knowing() {
    let server = Server::start();
    server.admin().command::<()>(&["SET", "disLock:x", "another"]);
    let id = id(&server, "x");
    let (code, said, _) = with(&server.url(), &["release", "x", "--force", "--id", &id]);
    assert!(code == 0 && said.contains("gets no message"), "{said}");
}

#[test]
fn a_lock_that_stays_is_an_object_with_its_hold() {
    let server = Server::start();
    server.admin().command::<()>(&["SET", "disLock:x", "another", "PX", "60000"]);
    let id = id(&server, "x");
    let (code, error) = json(&server.url(), &["release", "x"]);
    assert_eq!((code, &error["error"], &error["id"]), (4, &"not-released".into(), &id.into()));
    assert_eq!((&error["name"], &error["key"]), (&"x".into(), &"disLock:x".into()));
    assert!(error["remaining_ms"].as_u64().is_some_and(|rest| rest <= 60_000));
    assert!(error["renewed"].is_null(), "{error}");
}

/// A path may be any bytes.
#[test]
fn an_argument_that_is_no_text_is_no_panic() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let server = Server::start();
    server.admin().set("disLock:order:7", "another");
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join(OsStr::from_bytes(b"\xff"));
    std::fs::write(&file, "secret").unwrap();
    server.admin().command::<()>(&["CONFIG", "SET", "requirepass", "secret"]);
    let mut command = lockable(&server.url());
    let (code, _, why) = outcome(command.args(["release", "order:7", "--password-file"]).arg(file));
    assert!(code == 4 && why.contains("--force"), "{why}");
}

#[test]
fn force_needs_the_id_of_this_hold() {
    let server = Server::start();
    let holder = service(&server, "shop", "order:7", &[]);
    let (url, id) = (server.url(), id(&server, "order:7"));
    let (code, _, why) = with(&url, &["release", "order:7", "--force"]);
    assert!(code == 2 && why.contains(&id), "{why}");
    let (code, _, why) = with(&url, &["release", "order:7", "--force", "--id", "00000000"]);
    assert!(code == 4 && why.contains("nothing was done") && why.contains(&id), "{why}");
    assert!(holder.is_alive());
    let (code, said, _) = with(&url, &["release", "order:7", "--force", "--id", &id]);
    assert!(code == 0 && said.contains("taken away"), "{said}");
    wait::until(LIMIT, || !holder.is_alive());
    assert_eq!(holder.end().0, Some(124));
    assert_eq!(with(&url, &["release", "order:7"]).0, 3);
}

#[test]
fn the_next_holder_is_named() {
    let (server, holder) = shop();
    let options = ["--request-id", "cart-12", "--wait"];
    let waiter = service(&server, "cart", "order:7", &options);
    queued(&server, "order:7");
    let (code, said, _) = with(&server.url(), &["release", "order:7", "--grace", "1m"]);
    assert!(code == 0 && said.contains("; next: cart-12, cart@"), "{said}");
    assert!(said.contains(&format!(", with the id {}\n", id(&server, "order:7"))), "{said}");
    listening(&server, 1);
    let (code, outcome) = json(&server.url(), &["release", "order:7", "--grace", "1m"]);
    assert_eq!(
        (code, &outcome["outcome"], &outcome["next"]),
        (0, &"released".into(), &Value::Null)
    );
    drop((holder, waiter));
}

#[test]
fn a_release_as_json_is_one_object() {
    let (server, holder) = shop();
    let id = id(&server, "order:7");
    let (_, outcome) = json(&server.url(), &["release", "order:7", "--grace", "1m"]);
    assert_eq!((&outcome["outcome"], &outcome["id"]), (&"released".into(), &id.into()));
    assert!(outcome["after_ms"].is_u64());
    drop(holder);
}
