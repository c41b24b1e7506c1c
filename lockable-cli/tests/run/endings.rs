//! Goal: no process of a command outlives its lease, however that ends.
//! Method: the command starts processes that ignore SIGTERM, one of them outside of its group. At random moments the
//! lock is deleted, the server stopped, `lockable` killed or stopped. That the moment of the end is before that of the
//! lease is a test of its own; how late a process is then is in `tests/timings/program.rs`.

use std::fs;
use std::io::{IoSlice, Read, stdin};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread;
use std::time::Duration;

use lockable_tests::{Proxy, Server, long_form, wait};
use rustix::cmsg_space;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};

use crate::program::{LIMIT, Running, id, is_alive, listening, run, script, send, state, with};

#[test]
fn a_deleted_lock_ends_the_command() {
    repeat(|server, running| {
        server.admin().del("disLock:job");
        ends(&running);
        let (code, why) = running.end();
        assert_eq!(code, Some(124));
        assert!(why.contains("lock was lost"), "{why}");
    });
}

/// Long before the next renewal, which is due after twenty minutes.
#[test]
fn a_deletion_is_noticed_without_a_renewal() {
    let server = Server::start();
    let running = Running::start(&server.url(), &["--expire", "1h"]);
    let admin = server.admin();
    wait::until(LIMIT, || admin.info("stats").contains("tracking_total_items:1\r"));
    admin.del("disLock:job");
    ends(&running);
    let (code, why) = running.end();
    assert!(code == Some(124) && why.contains("lock was lost"), "{why}");
}

/// Method: the test is `lockable` to a watcher that hears of an end in the past.
#[test]
fn a_command_whose_lease_is_over_is_not_started() {
    let (mut ours, its) = UnixStream::pair().unwrap();
    let mut watcher = {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockable"));
        command.args(["__watcher", "--deadline", "1", "--kill-after", "0", "--", "true"]);
        command.stdin(OwnedFd::from(its)).spawn().unwrap()
    };
    let (input, mut space) = (stdin(), [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))]);
    let mut buffer = SendAncillaryBuffer::new(&mut space);
    let descriptors = [input.as_fd()];
    assert!(buffer.push(SendAncillaryMessage::ScmRights(&descriptors)));
    sendmsg(&ours, &[IoSlice::new(b"\n")], &mut buffer, SendFlags::empty()).unwrap();
    let mut said = String::new();
    ours.read_to_string(&mut said).unwrap();
    assert_eq!(said, "clear\n");
    assert!(watcher.wait().unwrap().success());
}

/// Goal: what the watcher kills in time, the server has not given to others yet.
/// Method: its first deadline is in its command line, as a moment on a clock that the test reads too. It leaves a
/// twentieth of the lease to a machine that is late.
#[test]
fn the_watchers_deadline_is_before_the_end_of_the_lease() {
    let server = Server::start();
    let running = Running::start(&server.url(), &OPTIONS);
    let end: u64 = server.admin().command(&["PEXPIRETIME", "disLock:job"]);
    let since = |clock| Duration::try_from(clock_gettime(clock)).unwrap();
    // In this order a pause between them makes the deadline too early at most.
    let (today, boot) = (since(ClockId::Realtime), since(ClockId::Boottime));
    let rest = deadline(running.watcher()).saturating_sub(boot);
    assert!(today + rest + LEASE / 20 <= Duration::from_millis(end), "{today:?} {rest:?} {end}");
}

/// In the time since the machine was started.
fn deadline(watcher: i32) -> Duration {
    let line = fs::read_to_string(format!("/proc/{watcher}/cmdline")).unwrap();
    let mut words = line.split('\0').skip_while(|word| *word != "--deadline");
    Duration::from_nanos(words.nth(1).unwrap().parse().unwrap())
}

#[test]
fn a_command_does_not_outlive_its_stopped_lockable() {
    repeat(|_, running| {
        running.send(Signal::STOP);
        ends(&running);
        running.send(Signal::CONT);
        assert_eq!(running.end().0, Some(124));
    });
}

#[test]
fn a_command_does_not_outlive_its_killed_lockable() {
    repeat(|_, running| {
        running.send(Signal::KILL);
        ends(&running);
    });
}

#[test]
fn a_command_does_not_outlive_its_killed_watcher() {
    repeat(|_, running| {
        let watcher = running.watcher();
        send(watcher, Signal::KILL);
        ends(&running);
        let (code, why) = running.end();
        assert_eq!(code, Some(125));
        assert!(why.contains("watcher") && !is_alive(watcher), "{why}");
    });
}

#[test]
fn a_stopped_watcher_is_replaced() {
    repeat(|server, running| {
        send(running.watcher(), Signal::STOP);
        server.admin().del("disLock:job");
        ends(&running);
        // By what was noticed first.
        assert!(matches!(running.end().0, Some(124 | 125)));
    });
}

/// It does not say that the command has ended, and the lease of the lock is renewed for an hour.
#[test]
fn a_stopped_watcher_keeps_no_lock() {
    let server = Server::start();
    let options = ["--expire", "1h"];
    let running = Running::of(run(&server.url(), &options, "echo $$; read line"), 1);
    send(running.watcher(), Signal::STOP);
    let (code, why) = running.end();
    assert!(code == Some(125) && why.contains("watcher"), "{why}");
    assert_eq!(server.admin().get("disLock:job"), None);
}

/// A watcher that does not read is stopped, and signals fill what it should read.
#[test]
fn a_watcher_that_does_not_read_holds_no_one_up() {
    let server = Server::start();
    let script = "trap '' USR1; echo $$; while :; do sleep 0.1; done";
    let running = Running::of(run(&server.url(), &["--expire", "1h"], script), 1);
    send(running.watcher(), Signal::STOP);
    wait::until(LIMIT, || {
        running.send(Signal::USR1);
        !running.is_alive()
    });
    assert_eq!(running.end().0, Some(125));
}

/// A `lockable` that does not read is stopped, and what becomes of the command does not wait for it.
#[test]
fn a_lockable_that_does_not_read_holds_no_one_up() {
    let server = Server::start();
    let running = Running::of(run(&server.url(), &OPTIONS, "echo $$; exec sleep 1000"), 1);
    running.send(Signal::STOP);
    for _ in 0..1_000 {
        send(running.family[0], Signal::STOP);
        send(running.family[0], Signal::CONT);
    }
    ends(&running);
}

#[test]
fn nothing_is_left_of_the_watcher() {
    let server = Server::start();
    let running = Running::of(run(&server.url(), &[], "echo $$; read line"), 1);
    let watcher = running.watcher();
    running.end();
    assert_eq!(state(watcher), None);
}

#[test]
fn a_command_does_not_outlive_both_of_its_guards() {
    let server = Server::start();
    let running = Running::of(run(&server.url(), &OPTIONS, "echo $$; exec sleep 1000"), 1);
    let watcher = running.watcher();
    for signal in [Signal::STOP, Signal::KILL] {
        send(running.id(), signal);
        send(watcher, signal);
    }
    wait::until(LIMIT, || !running.is_alive());
}

/// An operator asks first, and takes the lock away where that is not enough.
#[test]
fn a_lock_that_is_taken_while_the_command_ends_kills_it() {
    let server = Server::start();
    let running = Running::start(&server.url(), &["--expire", "1h", "--kill-after", "20m"]);
    listening(&server, 1);
    assert_eq!(with(&server.url(), &["release", "job", "--grace", "100ms"]).0, 4);
    assert!(running.is_alive());
    let force = ["release", "job", "--force", "--id", &id(&server, "job")];
    assert_eq!(with(&server.url(), &force).0, 0);
    ends(&running);
    let (code, why) = running.end();
    assert!(code == Some(124) && why.contains("lost"), "{why}");
}

/// A shell that became `lockable` may have started processes before.
#[test]
fn what_is_not_of_the_command_lives_on() {
    let server = Server::start();
    let becoming = "sleep 1000 >/dev/null 2>&1 & echo $!; \
                    exec \"$0\" \"$@\" run --key job -- sh -c 'echo $$; exec sleep 1000'";
    let running = Running::of(script("sh", &server.url(), becoming), 2);
    let [foreign, own] = running.family[..] else { panic!("{:?}", running.family) };
    send(running.watcher(), Signal::KILL);
    wait::until(LIMIT, || !is_alive(own));
    assert_eq!(running.end().0, Some(125));
    assert!(is_alive(foreign));
    send(foreign, Signal::KILL);
}

#[test]
fn a_command_does_not_outlive_its_lease_on_a_stopped_server() {
    while_the_server_stands(|_| {});
}

#[test]
fn a_stopped_watcher_and_a_stopped_server_are_no_way_out() {
    while_the_server_stands(|running| send(running.watcher(), Signal::STOP));
}

fn while_the_server_stands(before: impl Fn(&Running) + Sync) {
    in_threads(|| {
        let server = Server::start();
        let proxy = Proxy::start(&server);
        let running = Running::start(&proxy.url(), &OPTIONS);
        pause();
        before(&running);
        proxy.hold_requests();
        server.pause();
        ends(&running);
        // Otherwise `lockable` would wait for an answer to its release.
        server.resume();
        proxy.release_requests();
        let (code, why) = running.end();
        assert!(matches!(code, Some(124 | 125)), "{why}");
    });
}

fn ends(running: &Running) {
    wait::until(LIMIT, || !running.is_alive());
}

/// Does that to a command that has run for a random part of its lease.
fn repeat(part: impl Fn(&Server, Running) + Sync) {
    in_threads(|| {
        let server = Server::start();
        let running = Running::start(&server.url(), &OPTIONS);
        pause();
        part(&server, running);
    });
}

/// Two at a time, as often as the form of the test says.
fn in_threads(part: impl Fn() + Sync) {
    for _ in 0..long_form(1, 100) {
        thread::scope(|scope| {
            for _ in 0..SIDE_BY_SIDE {
                scope.spawn(&part);
            }
        });
    }
}

/// A random moment, before or after the first renewal, which is due after a third of the lease.
#[expect(clippy::disallowed_methods, reason = "the moment of a fault is what the test varies")]
fn pause() {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(0);
    let most = u64::try_from(LEASE.as_millis()).unwrap() / 2;
    thread::sleep(Duration::from_millis(random % most));
}

const LEASE: Duration = Duration::from_secs(4);

/// A machine that stalls for a second before a renewal has time for it still.
const OPTIONS: [&str; 4] = ["--expire", "4s", "--kill-after", "500ms"];

const SIDE_BY_SIDE: usize = 2;
