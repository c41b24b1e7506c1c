//! Signals to `lockable` are the command's.

use std::os::unix::process::ExitStatusExt;

use lockable_tests::{Server, wait};
use rustix::process::Signal;

use crate::program::{LIMIT, Running, group, outcome, queued, run, script, state};

#[test]
fn a_signal_is_passed_on_and_the_command_decides() {
    let server = Server::start();
    // The whole group gets it, and so does `sleep`.
    let script = "trap '' USR1; sleep 1000 & trap 'echo usr1' USR1; trap 'exit 3' TERM; \
                  echo $$; while :; do wait; done";
    let mut running = Running::of(run(&server.url(), &[], script), 1);
    running.send(Signal::USR1);
    assert_eq!(running.line(), "usr1");
    running.send(Signal::TERM);
    assert_eq!(running.end().0, Some(3));
    assert_eq!(server.admin().get("disLock:job"), None);
}

/// As one is that reads from a terminal in the background.
#[test]
fn a_stopped_command_hears_that_it_should_end() {
    let server = Server::start();
    let script = "echo $$; kill -TTIN $$; sleep 1000";
    let mut running = Running::of(run(&server.url(), &[], script), 1);
    let why = running.complaint();
    assert!(why.contains("--foreground"), "{why}");
    assert_eq!(state(running.family[0]).as_deref(), Some("T"));
    running.send(Signal::TERM);
    assert_eq!(running.end().0, Some(128 + 15));
}

#[test]
fn a_call_that_waits_ends_by_a_signal() {
    let server = Server::start();
    let (holder, admin) = (Running::start(&server.url(), &[]), server.admin());
    for signal in [Signal::TERM, Signal::HUP, Signal::QUIT] {
        // Where the test runs in the background, some of them are ignored.
        let waiting = "exec env --default-signal \"$0\" \"$@\" run --key job --wait -- true";
        let waiter = Running::of(script("sh", &server.url(), waiting), 0);
        queued(&server, "job");
        waiter.send(signal);
        assert_eq!(waiter.end().0, Some(128 + signal.as_raw()));
        assert_eq!(admin.keys("lockable:queue:*"), [""; 0], "{signal:?}");
    }
    drop(holder);
}

/// As `nohup` has it.
#[test]
fn a_call_that_waits_outlives_a_signal_that_is_ignored() {
    let server = Server::start();
    let admin = server.admin();
    admin.set("disLock:job", "another");
    let ignoring = "trap '' HUP; exec \"$0\" \"$@\" run --key job --wait -- true";
    let waiter = Running::of(script("sh", &server.url(), ignoring), 0);
    queued(&server, "job");
    waiter.send(Signal::HUP);
    admin.del("disLock:job");
    assert_eq!(waiter.end().0, Some(0));
}

#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let server = Server::start();
    let ignoring =
        "trap '' HUP; exec \"$0\" \"$@\" run --key job -- sh -c 'echo $$; read line; echo done'";
    let mut running = Running::of(script("sh", &server.url(), ignoring), 1);
    running.send(Signal::HUP);
    running.send(Signal::TERM);
    assert_eq!(running.line(), "");
    assert_eq!(running.end().0, Some(128 + 15));
}

#[test]
fn a_command_in_the_foreground_stays_in_the_group() {
    let server = Server::start();
    let script = "sleep 1000 & echo $!; echo $$; wait";
    let [own, foreground] =
        [&[][..], &["--foreground", "--wait"]].map(|options| run(&server.url(), options, script));
    let running = Running::of(own, 2);
    assert_eq!(group(running.family[0]), group(running.family[1]));
    assert_ne!(group(running.family[1]), group(running.id()));
    running.send(Signal::TERM);
    assert_eq!(running.end().0, Some(128 + 15));

    let running = Running::of(foreground, 2);
    assert_eq!(group(running.family[1]), group(running.id()));
    assert_ne!(group(running.watcher()), group(running.id()));
    server.admin().del("disLock:job");
    wait::until(LIMIT, || !running.is_alive());
    assert_eq!(running.end().0, Some(124));
}

/// The terminal sends it to the whole group.
#[test]
fn what_the_terminal_sends_is_not_passed_on_in_the_foreground() {
    let server = Server::start();
    let script = "trap 'echo winch' WINCH; trap 'echo usr1' USR1; sleep 1000 & echo $$; while :; do wait; done";
    let mut running = Running::of(run(&server.url(), &["--foreground"], script), 1);
    for _ in 0..20 {
        running.send(Signal::WINCH);
        running.send(Signal::USR1);
        assert_eq!(running.line(), "usr1");
    }
    running.send(Signal::TERM);
    assert_eq!(running.end().0, Some(128 + 15));
}

/// A shell ends a script only if what it runs has died by a signal. Not by SIGINT here: a job in the background ignores
/// that.
#[test]
fn lockable_dies_as_its_command_did() {
    let server = Server::start();
    let dying = "\"$0\" \"$@\" run --key job -- sh -c 'kill -TERM $$'; echo $?; echo after";
    let (code, said, _) = outcome(&mut script("bash", &server.url(), dying));
    assert_eq!((code, said.as_str()), (0, "143\nafter\n"));
    let status = run(&server.url(), &[], "kill -TERM $$").status().unwrap();
    assert_eq!(status.signal(), Some(15));
    assert_eq!(server.admin().get("disLock:job"), None);
}
