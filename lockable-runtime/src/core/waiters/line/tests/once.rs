//! Calls with `once`: when they are done, and what the owner token says.

use super::*;

const DONE: Enqueued = Enqueued::Done(Remaining::Time(Duration::from_secs(60)));

fn refused(actions: &Actions<&'static str>) -> Vec<&'static str> {
    let Some((fault, waiters)) = &actions.refuse else { return Vec::new() };
    assert_eq!(fault.kind, LockErrorKind::Done);
    waiters.iter().map(|waiter| waiter.answer).collect()
}

#[test]
fn those_that_wait_for_a_run_end_when_it_is_done() {
    let mut case = case();
    case.joins_once(0, "first");
    case.joins_once(1, "second");
    let entry = case.queries(&sent_once());
    let actions = case.answered(&entry, &DONE);
    assert_eq!(refused(&actions), ["first", "second"]);
    assert!(withdraws(&actions, &[&entry]));
    assert!(case.line.is_over());
}

#[test]
fn calls_of_another_kind_wait_on() {
    let mut case = case();
    case.joins_once(0, "once");
    case.joins(1, "plain");
    let entry = case.queries(&sent_once());
    let actions = case.answered(&entry, &DONE);
    assert_eq!(refused(&actions), ["once"]);
    assert_eq!(case.due_in(), Some(RECHECK_INTERVAL));
    // Its own place has a token that says nothing of `once`.
    assert!(gives_back(case.granted(&entry), &entry));
    assert_eq!(case.due_in(), Some(Duration::ZERO));
    let entry = case.queries(&sent());
    assert_eq!(delivered(&case.granted(&entry)), Some("plain"));
}

/// Otherwise a lock that a minimum hold keeps would be done.
#[test]
fn no_turn_is_passed_to_a_call_of_another_kind() {
    let mut case = case();
    case.joins_once(0, "once");
    let entry = case.queries(&sent_once());
    case.joins(1, "plain");
    case.joins_once(2, "again");
    assert_eq!(delivered(&case.granted(&entry)), Some("once"));
    assert!(is_nothing(&case.line.passed(&entry, case.now)));
    assert!(is_nothing(&case.line.left(1, case.now)));
    assert_eq!(delivered(&case.line.passed(&entry, case.now)), Some("again"));
}

#[test]
fn a_grant_goes_to_the_first_call_of_its_kind() {
    let mut case = case();
    case.joins_once(0, "once");
    let entry = case.queries(&sent_once());
    case.joins(1, "plain");
    case.joins_once(2, "next");
    assert!(is_nothing(&case.line.left(0, case.now)));
    assert_eq!(delivered(&case.granted(&entry)), Some("next"));
}

#[test]
fn an_old_answer_ends_no_call_behind_a_turn() {
    let mut case = case();
    case.joins_once(0, "first");
    case.joins_once(1, "second");
    let entry = case.queries(&sent_once());
    assert_eq!(delivered(&case.granted(&entry)), Some("first"));
    assert!(is_nothing(&case.answered(&entry, &DONE)));
}
