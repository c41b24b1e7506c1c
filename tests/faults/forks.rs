//! Processes that were forked, or started twice from one image, while locks were in use.

use std::collections::HashSet;
use std::time::Duration;

use lockable_tests::forks::Way;
use lockable_tests::{Peer, Program, Server, Tls, wait};
use rstest::rstest;

use crate::support::{FENCE, KEY, LIMIT, WORKER, connect_ample, elapse, server_and_proxy};

#[test]
fn a_locker_of_the_parent_is_refused_at_once() {
    let server = Server::start();
    let said = run("refused", &server);
    let forked = "NotConfigured: this locker was made before the process was forked; make another one \
                  in the child, and `install` it there";
    for what in [
        "own runtime",
        "with a limit",
        "inherited runtime",
        "leading",
        "decorated",
        "sync",
        "inspect",
    ] {
        assert!(said.contains(&format!("child: {what}: {forked}\n")), "{what}\n{said}");
    }
    assert!(said.contains("child: check: ") && said.contains("error [unreachable]"), "{said}");
    for what in ["extend", "release"] {
        assert!(said.contains(&format!("child: {what}: Lost: ")), "{what}\n{said}");
    }
    assert!(said.contains("child: shutdown: ok\n"), "{said}");
    assert!(said.contains("the parent holds: true\n"), "{said}");
    // The fencing tokens of each lock that was ever asked for have a key: the child asked for none.
    assert_eq!(server.admin().keys("*"), [FENCE]);
}

#[test]
fn a_guard_of_the_parent_leaves_its_lock_alone() {
    let server = Server::start();
    let admin = server.admin();
    let mut worker = Peer::start(WORKER, ["fork", &server.url(), "guard"]);
    assert_eq!(worker.hear(), "child: held: false, lost: true");
    let shown = worker.hear();
    assert!(shown.contains("is_held: false"), "{shown}");
    let lost = worker.hear();
    assert!(lost.contains("forked") && lost.contains("its parent's"), "{lost}");
    assert_eq!(worker.hear(), "ready");
    let owner = admin.get(KEY);
    assert!(owner.is_some());
    // The parent renews on, over the connection that it had.
    let renewals = admin.command_calls("pexpire");
    wait::until(LIMIT, || admin.command_calls("pexpire") > renewals + 1);
    assert_eq!(admin.get(KEY), owner);
    assert_eq!(worker.ask("continue"), "held: true");
    worker.finish();
    assert_eq!(admin.get(KEY), None);
}

/// Goal: a child that only runs its parent's runtime takes no answers of the parent away, after which
/// the next ones would go to the wrong calls.
#[rstest]
#[case::plain(Server::url)]
#[case::over_tls(Server::tls_url)]
fn a_child_on_its_parents_runtime_reads_no_answers(#[case] url: fn(&Server) -> String) {
    let tls = Tls::generate();
    let server = Server::builder().tls(&tls).start();
    server.admin().set("disLock:busy", "another program");
    let worker = Program::new(WORKER).arg("fork").arg(&url(&server)).arg("inherited runtime");
    let said = worker.env("SSL_CERT_FILE", tls.ca_file().to_str().unwrap()).run(LIMIT).unwrap();
    assert!(said.contains("held by two: 0\n"), "{said}");
}

#[test]
fn a_child_locks_with_a_locker_of_its_own() {
    let server = Server::start();
    let said = run("own", &server);
    assert!(said.contains("child: the parent's lock: WaitLimitReached: "), "{said}");
    assert!(said.contains("child: renewed: true\n"), "{said}");
    for what in ["released", "decorated", "sync", "shutdown"] {
        assert!(said.contains(&format!("child: {what}: ok\n")), "{what}\n{said}");
    }
    assert_eq!(server.admin().get("disLock:dropped"), None);
}

/// Goal: a child is noticed also where nothing but the system knows of it.
/// Method: its worker's children are made in other ways than by the `fork` of libc.
#[rstest]
#[case::by_clone(Way::Clone)]
#[case::by_fork_without_handlers(Way::WithoutHandlers)]
#[case::with_the_id_of_its_parent(Way::SameId)]
fn a_child_is_noticed_however_it_was_made(#[case] way: Way) {
    let (server, directory) = (Server::start(), tempfile::tempdir().unwrap());
    let run = |case| {
        let worker = way.of(WORKER, directory.path())?.arg("fork").arg(&server.url()).arg(case);
        Some(worker.run(LIMIT).unwrap_or_else(|why| panic!("{why}")))
    };
    let Some(said) = run("refused") else { return };
    assert!(said.contains("child: own runtime: NotConfigured: "), "{said}");
    assert!(said.contains("child: release: Lost: "), "{said}");
    assert!(said.contains("the parent holds: true\n") && !said.contains("hangs"), "{said}");
    let said = run("own").unwrap();
    assert!(said.contains("child: the parent's lock: WaitLimitReached: "), "{said}");
    assert!(said.contains("child: renewed: true\n") && !said.contains("hangs"), "{said}");
}

#[test]
fn the_default_locker_of_a_child_is_its_own() {
    let server = Server::start();
    let said = Program::new(WORKER).arg("fork").arg(&server.url()).arg("environment");
    let said = said.env("LOCKABLE_URL", &server.url()).run(LIMIT).unwrap();
    assert_eq!(said, "child: sync: ok\nchild: async: ok\n");
}

#[test]
fn forked_processes_have_different_owner_tokens() {
    let server = Server::start();
    assert_eq!(run("tokens", &server), "");
    let admin = server.admin();
    let owners: HashSet<String> = [KEY, "disLock:1", "disLock:2"]
        .iter()
        .filter_map(|key| Some(admin.get(key)?.split_once('.')?.0.to_owned()))
        .collect();
    assert_eq!(owners.len(), 3, "{owners:?}");
}

#[rstest]
#[case::that_is_polled("body", "child: steps: 0\n")]
#[case::that_forks_itself("sync body", "")]
fn a_body_ends_in_the_parent_only(#[case] case: &str, #[case] steps: &str) {
    let server = Server::start();
    let said = run(case, &server);
    assert!(said.contains(&format!("child: {case}: Lost: ")), "{said}");
    assert!(said.contains(steps) && said.contains("parent: true\n"), "{said}");
    assert_eq!(server.admin().get(KEY), None);
}

/// Goal: two processes that were started from one image never have the same owner token, though all that
/// they have in memory is the same.
/// Method: an image has nothing of the connections of the process that it was made of, so the connection
/// is cut. The next token is made before the locker finds that, and longer than a moment after the last.
#[tokio::test]
async fn after_a_lost_connection_tokens_begin_differently() {
    let (server, proxy) = server_and_proxy();
    let locker = connect_ample(&proxy.url()).await;
    let origin = async || {
        let guard = locker.lock("k").acquire().await.unwrap();
        let owner = server.admin().get(KEY).unwrap();
        guard.release().await.unwrap();
        owner.split_once('.').unwrap().0.to_owned()
    };
    let before = origin().await;
    proxy.cut();
    elapse(2 * MOMENT).await;
    assert_ne!(origin().await, before);
}

/// As long as a locker uses what it has drawn.
const MOMENT: Duration = Duration::from_millis(1);

/// What the worker says, in which no child hangs.
fn run(case: &str, server: &Server) -> String {
    // That the environment names a locker does not help a child whose parent had chosen one.
    let said = Program::new(WORKER).arg("fork").arg(&server.url()).arg(case);
    let said = said.env("LOCKABLE_URL", &server.url()).run(LIMIT);
    let said = said.unwrap_or_else(|error| panic!("{error}"));
    assert!(!said.contains("hangs"), "{said}");
    said
}
