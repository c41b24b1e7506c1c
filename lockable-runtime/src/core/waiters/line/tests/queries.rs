//! Joining, querying, what the answers and wake-ups mean, and leaving.

use super::*;

#[test]
fn a_line_asks_at_once_and_for_one_place() {
    let mut case = case();
    case.joins(0, "first");
    assert_eq!(case.due_in(), Some(Duration::ZERO));
    let entry = case.queries(&sent());
    case.joins(1, "second");
    assert_eq!(case.due_in(), None);
    assert!(Arc::ptr_eq(&entry, &case.queries(&sent())));
    assert_eq!(case.line.queued_owner(), Some(&entry.owner));
}

#[test]
fn no_call_no_query() {
    let mut case = case();
    assert!(case.line.came_due(|_| unreachable!("no call waits")).is_none());
    assert!(case.line.is_over());
}

#[test]
fn a_queued_line_asks_when_the_holders_lease_ends() {
    let time = |millis| Remaining::Time(Duration::from_millis(millis));
    let of_answers = [
        (Remaining::Unknown, 800),
        (Remaining::Endless, 800),
        (time(5_000), 800),
        (time(300), 300),
    ];
    for (remaining, due) in of_answers {
        let mut case = case();
        case.joins(0, "first");
        let entry = case.queries(&sent());
        assert!(is_nothing(&case.answered(&entry, &Enqueued::Queued(remaining))));
        assert_eq!(case.due_in(), Some(Duration::from_millis(due)));
        assert!(matches!(case.line.last_reply, LastReply::Busy));
    }
}

#[test]
fn a_line_that_is_woken_asks_at_once() {
    let mut case = case();
    case.joins(0, "first");
    let entry = case.queries(&sent());
    assert!(is_nothing(&case.answered(&entry, &BUSY)));
    for (again, due) in [(true, Duration::ZERO), (false, RECHECK_INTERVAL)] {
        let woken = case.line.woken(&entry.owner);
        assert!(Arc::ptr_eq(woken.query.as_ref().unwrap(), &entry) && woken.deliver.is_none());
        // The lock may be reserved for it since that query landed.
        assert!(!again || is_nothing(&case.line.woken(&entry.owner)));
        assert!(is_nothing(&case.answered(&entry, &BUSY)), "another holder has the lock");
        assert_eq!(case.due_in(), Some(due));
    }
    drop(case.queries(&entry));
    let granted = Enqueued::Granted(case.grant(&entry));
    assert_eq!(delivered(&case.answered(&entry, &granted)), Some("first"));
    assert!(is_nothing(&case.line.woken(&entry.owner)), "it has its turn");
}

/// Goal: the answer to an earlier query puts off the query of a new subscription.
#[test]
fn a_query_under_way_puts_off_no_query_of_a_new_subscription() {
    for is_missed in [false, true] {
        let mut case = case();
        case.joins(0, "first");
        let entry = case.queries(&sent());
        if is_missed {
            case.line.queries_again();
        }
        assert!(is_nothing(&case.answered(&entry, &BUSY)));
        assert_eq!(case.due_in() == Some(Duration::ZERO), is_missed);
    }
}

#[test]
fn a_wake_up_of_another_changes_nothing() {
    let mut case = case();
    case.joins(0, "first");
    let entry = case.queries(&sent());
    assert!(is_nothing(&case.line.woken(&sent().owner)));
    assert_eq!(case.line.queued_owner(), Some(&entry.owner));
}

/// See [`Line::left`].
#[test]
fn a_wake_up_that_crosses_a_withdrawal_changes_nothing() {
    let mut case = case();
    case.joins(0, "first");
    let entry = case.queries(&sent());
    assert!(is_nothing(&case.answered(&entry, &BUSY)));
    assert!(withdraws(&case.line.left(0, case.now), &[&entry]));
    assert!(case.line.is_over());
    assert!(is_nothing(&case.line.woken(&entry.owner)));
    assert!(case.line.is_over());
}

#[test]
fn a_query_that_a_withdrawal_may_overtake_is_withdrawn_again() {
    let mut case = case();
    case.joins(0, "first");
    let entry = case.queries(&sent());
    assert!(withdraws(&case.line.left(0, case.now), &[&entry]));
    assert!(!case.line.is_over(), "a query has no answer");
    assert!(withdraws(&case.answered(&entry, &BUSY), &[&entry]));
    assert!(case.line.is_over());
}

#[test]
fn a_place_is_kept_while_another_call_waits() {
    let mut case = case();
    case.joins(0, "first");
    case.joins(1, "second");
    let entry = case.queries(&sent());
    assert!(is_nothing(&case.line.left(0, case.now)));
    assert_eq!(delivered(&case.granted(&entry)), Some("second"));
}

#[test]
fn a_call_that_comes_back_has_its_old_place() {
    let mut case = case();
    case.joins(2, "third");
    case.joins(0, "first");
    case.joins(1, "second");
    let entry = case.queries(&sent());
    assert_eq!(delivered(&case.granted(&entry)), Some("first"));
    assert_eq!(delivered(&case.line.returned(&entry, case.now)), Some("second"));
}

#[test]
fn a_query_without_an_answer_counts_as_under_way() {
    let mut case = case();
    case.joins_after_try(0, "first");
    let attempt = case.queries(&sent());
    let fault = Fault::unavailable("no answer");
    assert!(is_nothing(&case.line.failed(Some(&attempt), &fault, case.now)));
    assert!(!case.line.query_ends(&attempt, false));
    assert_eq!(delivered(&case.granted(&attempt)), Some("first"));
    let turn_end = case.releasing(&attempt, &sent());
    assert!(withdraws(&case.line.released(&attempt, turn_end, case.now), &[&attempt]));
}

#[test]
fn a_query_that_was_never_sent_is_forgotten() {
    let mut case = case();
    case.joins(0, "first");
    let unsent = Arc::new(Attempt::drawn(LockKey::from_static("k"), Ttl::DEFAULT));
    let attempt = case.queries(&unsent);
    assert!(!case.line.query_ends(&attempt, false));
    assert_eq!(delivered(&case.granted(&attempt)), Some("first"));
    let turn_end = case.releasing(&attempt, &sent());
    assert!(is_nothing(&case.line.released(&attempt, turn_end, case.now)));
}

#[test]
fn a_line_queries_again_after_a_fault_and_gives_up_after_half_a_minute() {
    let mut case = case();
    case.joins_after_try(0, "first");
    case.joins(1, "second");
    let fault = Fault::unavailable("no answer");
    let entry = case.queries(&sent());
    for after in [0, 10_000, 19_999] {
        let now = case.after(after);
        assert!(is_nothing(&case.line.failed(Some(&entry), &fault, now)));
        assert_eq!(case.due_in(), Some(RECHECK_INTERVAL / 5));
        assert!(matches!(case.line.last_reply, LastReply::Fault(_)));
    }
    let now = case.after(1);
    let actions = case.line.failed(Some(&entry), &fault, now);
    let (_, refused) = actions.refuse.as_ref().unwrap();
    let names: Vec<_> = refused.iter().map(|waiter| waiter.answer).collect();
    assert_eq!(names, ["first", "second"]);
    assert!(withdraws(&actions, &[&entry]));
    assert!(case.line.query_ends(&entry, false) && case.line.is_over());
}

#[test]
fn an_answer_starts_the_half_minute_again() {
    let mut case = case();
    case.joins_after_try(0, "first");
    let fault = Fault::unavailable("no answer");
    let entry = case.queries(&sent());
    assert!(is_nothing(&case.line.failed(Some(&entry), &fault, case.now)));
    case.after(29_000);
    assert!(is_nothing(&case.answered(&entry, &BUSY)));
    let entry = case.queries(&entry);
    let now = case.after(2_000);
    assert!(is_nothing(&case.line.failed(Some(&entry), &fault, now)));
}

#[test]
fn a_first_query_ends_its_calls_as_a_try_does() {
    let mut case = case();
    case.joins_behind_try(0, "first");
    case.line.tried(fault(), case.now);
    case.joins_behind_try(1, "second");
    let entry = case.queries(&sent());
    let actions = case.line.failed(Some(&entry), &Fault::unavailable("no answer"), case.now);
    assert_eq!(actions.refuse.as_ref().unwrap().1.len(), 2);
    assert!(withdraws(&actions, &[&entry]));
    assert!(case.line.query_ends(&entry, false) && case.line.is_over());
}

#[test]
fn an_old_query_without_an_answer_ends_no_new_call() {
    let mut case = case();
    case.joins_behind_try(0, "first");
    let entry = case.queries(&sent());
    assert!(withdraws(&case.line.left(0, case.now), &[&entry]));
    case.joins_behind_try(1, "second");
    let fault = Fault::unavailable("no answer");
    assert!(withdraws(&case.line.failed(Some(&entry), &fault, case.now), &[&entry]));
    assert_eq!(case.line.len(), 1);
}

#[test]
fn a_refusal_ends_every_call_at_once() {
    let mut case = case();
    case.joins(0, "first");
    let refused = Fault::new(LockErrorKind::Refused, "no right");
    let actions = case.line.failed(None, &refused, case.now);
    assert_eq!(actions.refuse.unwrap().1.len(), 1);
    assert!(case.line.is_over());
}

#[test]
fn a_fault_of_a_leftover_withdraws_it() {
    let mut case = case();
    case.joins(0, "first");
    let entry = case.queries(&sent());
    assert!(withdraws(&case.line.left(0, case.now), &[&entry]));
    let fault = Fault::unavailable("no answer");
    assert!(withdraws(&case.line.failed(Some(&entry), &fault, case.now), &[&entry]));
    assert_eq!(case.due_in(), None, "no call waits");
}

#[test]
fn what_a_newcomer_has_heard_is_known_to_the_line() {
    let mut case = case();
    let last_reply = |case: &mut Case, number, last_reply| {
        let waiter = WaitingCall {
            number,
            ttl: Ttl::DEFAULT,
            is_fair: false,
            is_once: false,
            identity: None,
            label: Default::default(),
            answer: "",
        };
        case.line.joined(waiter, last_reply, Behind::Holder, case.now);
    };
    last_reply(&mut case, 0, LastReply::Nothing);
    assert!(matches!(case.line.last_reply, LastReply::Nothing));
    last_reply(&mut case, 1, LastReply::Fault(Box::new(Fault::unavailable("no answer"))));
    assert!(matches!(case.line.last_reply, LastReply::Fault(_)));
    last_reply(&mut case, 2, LastReply::Nothing);
    assert!(matches!(case.line.last_reply, LastReply::Fault(_)));
    last_reply(&mut case, 3, LastReply::Busy);
    assert!(matches!(case.line.last_reply, LastReply::Busy));
}

fn fault() -> LastReply {
    LastReply::Fault(Box::new(Fault::unavailable("no answer")))
}

#[test]
fn a_line_behind_a_try_asks_after_a_deadline() {
    let mut case = case();
    case.joins_behind_try(0, "first");
    assert_eq!(case.due_in(), Some(DEADLINE));
    assert!(matches!(case.line.last_reply, LastReply::Nothing));
    let entry = case.queries(&sent());
    assert!(is_nothing(&case.answered(&entry, &BUSY)));
}

#[test]
fn a_line_asks_at_once_when_a_try_ends() {
    for last_reply in [LastReply::Nothing, LastReply::Busy, fault()] {
        let mut case = case();
        case.joins_behind_try(0, "first");
        case.joins_behind_try(1, "second");
        let now = case.after(100);
        case.line.tried(last_reply.clone(), now);
        assert_eq!(case.due_in(), Some(Duration::ZERO));
        assert_eq!(mem::discriminant(&case.line.last_reply), mem::discriminant(&last_reply));
    }
}

#[test]
fn a_call_that_tried_comes_before_those_behind_it() {
    let mut case = case();
    case.joins_behind_try(1, "second");
    case.line.tried(LastReply::Busy, case.now);
    case.joins(0, "first");
    let entry = case.queries(&sent());
    assert_eq!(delivered(&case.granted(&entry)), Some("first"));
}

#[test]
fn a_try_that_ends_asks_no_second_query() {
    let mut case = case();
    case.joins_behind_try(0, "first");
    let entry = case.queries(&sent());
    case.line.tried(LastReply::Busy, case.now);
    assert_eq!(case.due_in(), None, "a query is under way");
    assert!(is_nothing(&case.answered(&entry, &BUSY)));
    assert_eq!(case.due_in(), Some(RECHECK_INTERVAL));
    case.line.tried(LastReply::Busy, case.now);
    assert_eq!(case.due_in(), None, "it is queued");
}

#[test]
fn a_try_that_ends_during_a_turn_changes_nothing() {
    let mut case = case();
    let attempt = case.given();
    case.joins_behind_try(1, "second");
    assert_eq!(case.due_in(), Some(RECHECK_INTERVAL), "the turn continues");
    case.line.tried(fault(), case.now);
    assert_eq!(case.due_in(), None);
    assert_eq!(delivered(&case.line.passed(&attempt, case.now)), Some("second"));
}

#[test]
fn a_try_that_no_call_waits_for_is_forgotten() {
    let mut case = case();
    case.joins_behind_try(0, "first");
    assert!(is_nothing(&case.line.left(0, case.now)));
    case.line.due = None;
    case.line.tried(fault(), case.now);
    assert!(case.line.is_over() && case.due_in().is_none());
    assert!(matches!(case.line.last_reply, LastReply::Nothing));
}
