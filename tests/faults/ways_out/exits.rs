//! Programs that end right after they have dropped a guard, without a word about its release.

use lockable_tests::{Peer, Program, Server};
use rstest::rstest;

use crate::support::{FENCE, KEY, LIMIT, WORKER};

/// Goal: the lock is free when the program has ended.
/// Method: programs, one after the other, until four have freed their lock. Each waits for its release for a
/// tenth of a second at most, so a busy machine leaves many locks; without that wait hardly one is freed.
#[rstest]
#[case::outside_a_runtime("outside", "")]
#[case::on_one_thread("one thread", "")]
#[case::on_many_threads("many threads", "")]
#[case::by_a_task("task", "")]
#[case::by_a_runtime("aborted", "")]
#[case::of_an_installed_locker("installed", "")]
#[case::of_another_thread("elsewhere", "")]
#[case::when_main_exits("exit", "")]
#[case::when_main_panics("panic", "a panic of the test's own")]
#[case::beside_subscriber_and_recorder("listener", "its release is sent in the background")]
fn a_guard_dropped_at_the_end_is_freed(#[case] case: &str, #[case] says: &str) {
    let server = Server::start();
    let admin = server.admin();
    let is_freed = |_: &usize| {
        admin.flush();
        let said = Program::new(WORKER).arg("exit").arg(&server.url()).arg(case).run(LIMIT);
        let said = said.unwrap_or_else(|error| error);
        assert!(said.contains(says), "{said}");
        assert_eq!(admin.keys("lockable:fence:*"), [FENCE], "it was held");
        admin.get(KEY).is_none()
    };
    assert_eq!((0..40).filter(is_freed).take(4).count(), 4);
}

#[test]
fn a_program_in_memory_ends_as_well() {
    Program::new(WORKER).arg("exit").arg("memory://").arg("many threads").run(LIMIT).unwrap();
}

/// The end waits for a moment, and not for a server that gives no answer: that one stays stopped.
#[test]
fn a_program_with_a_stalled_server_still_ends() {
    let server = Server::start();
    let mut worker = Peer::start(WORKER, ["exit", &server.url(), "stopped"]);
    assert_eq!(worker.hear(), "held");
    server.pause();
    worker.say("continue");
    worker.finish();
    server.resume();
}
