//! Programs that end right after they have dropped a guard, without a word about its release.

use lockable_tests::{Peer, Program, Server};

use crate::support::{FENCE, KEY, LIMIT};

/// Goal: the lock is free when the program has ended.
/// Method: twenty programs, one after the other. Each waits for its release for a tenth of a second at
/// most, so some may leave their lock; without that wait hardly one frees it.
fn is_freed(case: &str, says: &str) {
    let server = Server::start();
    let admin = server.admin();
    let mut freed = 0;
    for _ in 0..20 {
        let said = Program::new(WORKER).arg(&server.url()).arg(case).run(LIMIT);
        let said = said.unwrap_or_else(|error| error);
        assert!(said.contains(says), "{said}");
        assert_eq!(admin.keys("lockable:fence:*"), [FENCE], "it was held");
        freed += u32::from(admin.get(KEY).is_none());
        admin.flush();
    }
    assert!(freed >= 10, "{freed} of 20 were freed");
}

#[test]
fn a_guard_dropped_outside_a_runtime_is_freed() {
    is_freed("outside", "");
}

#[test]
fn a_guard_dropped_on_one_thread_is_freed() {
    is_freed("one thread", "");
}

#[test]
fn a_guard_dropped_on_many_threads_is_freed() {
    is_freed("many threads", "");
}

#[test]
fn a_guard_dropped_by_a_task_is_freed() {
    is_freed("task", "");
}

#[test]
fn a_guard_dropped_by_a_runtime_is_freed() {
    is_freed("aborted", "");
}

#[test]
fn an_installed_lockers_guard_is_freed() {
    is_freed("installed", "");
}

#[test]
fn a_guard_is_freed_when_main_exits() {
    is_freed("exit", "");
}

#[test]
fn a_guard_is_freed_when_main_panics() {
    is_freed("panic", "a panic of the test's own");
}

#[test]
fn a_guard_is_freed_beside_subscriber_and_recorder() {
    is_freed("listener", "its release is sent in the background");
}

#[test]
fn a_program_in_memory_ends_as_well() {
    Program::new(WORKER).arg("memory://").arg("many threads").run(LIMIT).unwrap();
}

/// The end waits for a moment, and not for a server that gives no answer: that one stays stopped.
#[test]
fn a_program_with_a_stalled_server_still_ends() {
    let server = Server::start();
    let mut worker = Peer::start(WORKER, [&server.url(), "stopped"]);
    assert_eq!(worker.hear(), "held");
    server.pause();
    worker.say("continue");
    worker.finish();
    server.resume();
}

const WORKER: &str = env!("CARGO_BIN_EXE_exit_worker");
