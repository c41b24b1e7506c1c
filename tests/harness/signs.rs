//! What a test looks for is found when it is there, and what does not come has a limit.

use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Peer, Program, Sections, wait};

#[test]
#[should_panic(expected = "did not hold within 20ms")]
fn waiting_has_a_limit() {
    wait::until(Duration::from_millis(20), || false);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "harness/signs.rs")]
async fn waiting_has_a_limit_under_a_paused_clock() {
    wait::until_async(Duration::from_millis(20), async || false).await;
}

#[tokio::test]
#[should_panic(expected = "Overlap")]
async fn two_holders_at_a_time_are_found() {
    let (sections, first, second) = (Sections::default(), held().await, held().await);
    sections.enter(&first);
    sections.enter(&second);
    sections.assert_sound();
}

#[tokio::test]
#[should_panic(expected = " after ")]
async fn a_token_that_does_not_rise_is_found() {
    let (sections, first, second) = (Sections::default(), held().await, held().await);
    sections.enter(&second);
    sections.leave(&second);
    sections.enter(&first);
    sections.assert_sound();
}

/// A guard of one lock, of a locker that knows nothing of other ones.
async fn held() -> LockGuard {
    Locker::in_memory().lock("k").acquire().await.unwrap()
}

#[test]
#[should_panic(expected = "the process ended with exit status: 1")]
fn a_peer_that_fails_is_a_failed_test() {
    Peer::start("false", [""; 0]).finish();
}

#[test]
fn a_program_that_fails_or_lasts_says_so() {
    let run = |script: &str, limit| Program::new("sh").arg("-c").arg(script).run(limit);
    let failure = run("echo before; echo again >&2; exit 3", Duration::from_secs(60)).unwrap_err();
    assert_eq!(failure, "it ended with exit status: 3\nbefore\nagain\n");
    let failure = run("exec sleep 600", Duration::from_millis(100)).unwrap_err();
    assert_eq!(failure, "it had not ended after 100ms\n");
}
