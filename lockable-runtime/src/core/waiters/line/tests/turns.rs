use super::*;
use crate::core::backend::epochs::Epochs;
use crate::core::types::permit::{LocalNumber, LocalPermit, PermitsKey};

#[test]
fn two_answers_begin_one_turn() {
    let mut case = case();
    case.joins(0, "first");
    case.joins(1, "second");
    let entry = case.queries(&sent());
    drop(case.queries(&entry));
    let granted = Enqueued::Granted(case.grant(&entry));
    assert_eq!(delivered(&case.answered(&entry, &granted)), Some("first"));
    assert!(is_nothing(&case.answered(&entry, &granted)));
    assert_eq!(case.line.len(), 1);
}

#[test]
fn a_turn_is_what_its_grant_says() {
    let mut case = case();
    case.joins(0, "first");
    let entry = case.queries(&sent());
    let grant = Grant::answered(&entry, Reserved::turn(7), case.now);
    case.after(2_000);
    let since = grant.since();
    let (_, granted) = case.answered(&entry, &Enqueued::Granted(grant)).deliver.unwrap();
    assert_eq!((u64::from(granted.grant.fencing_token()), granted.grant.since()), (7, since));
    assert!(!granted.is_passed_on && Arc::ptr_eq(&granted.attempt, &entry));
    assert!(entry.had_turn());
    assert_eq!(case.due_in(), Some(RECHECK_INTERVAL));
}

#[test]
fn a_late_grant_of_a_place_that_was_given_up_is_released() {
    let mut case = case();
    case.joins(0, "first");
    let entry = case.queries(&sent());
    assert!(withdraws(&case.line.left(0, case.now), &[&entry]));
    case.joins(1, "second");
    let granted = Enqueued::Granted(case.grant(&entry));
    assert!(releases(&case.answered(&entry, &granted), &entry));
    assert_eq!(case.line.len(), 1);
}

#[test]
fn a_turn_that_no_call_receives_is_passed_to_the_next() {
    let mut case = case();
    let attempt = case.given();
    case.joins(1, "second");
    let passed = case.line.left(0, case.now);
    assert_eq!(delivered(&passed), Some("second"));
    assert!(is_nothing(&case.line.left(0, case.now)), "it has left");
    assert!(gives_back(case.line.left(1, case.now), &attempt));
    assert!(case.line.is_over());
}

#[test]
fn a_turn_is_passed_on_with_the_next_fencing_token() {
    let mut case = case();
    let attempt = case.given();
    for pass in 1..=16 {
        case.joins(pass, "next");
        let (_, granted) = case.line.passed(&attempt, case.now).deliver.unwrap();
        assert_eq!(u64::from(granted.grant.fencing_token()), 100 + pass);
        assert!(granted.is_passed_on);
    }
    case.joins(17, "last");
    assert!(is_nothing(&case.line.passed(&attempt, case.now)));
}

#[test]
fn a_turn_without_further_fencing_tokens_is_not_passed_on() {
    let mut case = case();
    case.joins(0, "first");
    case.joins(1, "second");
    let entry = case.queries(&sent());
    let grant = Grant::answered(&entry, Reserved::single(7), case.now);
    assert_eq!(delivered(&case.granted_as(&entry, grant)), Some("first"));
    assert!(is_nothing(&case.line.passed(&entry, case.now)));
}

#[test]
fn a_turn_is_passed_on_for_five_milliseconds() {
    for (millis, is_passed) in [(4, true), (5, false)] {
        let mut case = case();
        let attempt = case.given();
        case.joins(1, "second");
        let now = case.after(millis);
        assert_eq!(delivered(&case.line.passed(&attempt, now)).is_some(), is_passed);
    }
}

#[test]
fn a_fair_call_neither_takes_nor_gives_a_pass() {
    for (first, second) in [(true, false), (false, true)] {
        let mut case = case();
        case.joins_as(0, "first", first);
        case.joins_as(1, "second", second);
        let attempt = case.queries(&sent());
        assert_eq!(delivered(&case.granted(&attempt)), Some("first"));
        assert!(is_nothing(&case.line.passed(&attempt, case.now)));
    }
}

#[test]
fn a_lock_that_is_not_surely_held_is_not_passed_on() {
    for (after, is_passed) in [(9_897, true), (9_898, false)] {
        let mut case = case();
        case.joins(0, "first");
        case.joins(1, "second");
        let entry = case.queries(&sent());
        let grant = case.grant(&entry);
        case.after(after);
        assert_eq!(delivered(&case.granted_as(&entry, grant)), Some("first"));
        assert_eq!(delivered(&case.line.passed(&entry, case.now)).is_some(), is_passed, "{after}");
    }
}

/// The lease of the next call counts from the same request.
#[test]
fn a_turn_is_passed_to_a_call_with_a_shorter_lease() {
    for (seconds, after, is_passed) in
        [(9, 0, true), (10, 0, true), (11, 0, false), (1, 990, false)]
    {
        let mut case = case();
        case.joins(0, "first");
        let entry = case.queries(&sent());
        let grant = case.grant(&entry);
        case.after(after);
        assert_eq!(delivered(&case.granted_as(&entry, grant)), Some("first"));
        case.joins_for(1, "second", seconds);
        let passed = case.line.passed(&entry, case.now);
        assert_eq!(delivered(&passed).is_some(), is_passed, "{seconds} {after}");
    }
}

/// The call for which the entry was made has left, and the next one needs a longer lease.
#[test]
fn a_place_is_asked_for_as_long_as_its_first_call_needs() {
    let mut case = case();
    case.joins(0, "first");
    let entry = case.queries(&sent());
    case.joins_for(1, "second", 60);
    case.joins(2, "third");
    assert!(is_nothing(&case.line.left(0, case.now)));
    let short = Enqueued::Granted(case.grant(&entry));
    assert!(is_nothing(&case.answered(&entry, &short)), "no call behind it comes before it");
    assert_eq!(case.due_in(), Some(Duration::ZERO));
    let longer = case.queries(&sent());
    assert_eq!((longer.owner == entry.owner, longer.ttl.duration().as_secs()), (true, 60));
    assert_eq!((longer.entry(), longer.sent_at()), (entry.entry(), entry.sent_at()));
    let granted = Enqueued::Granted(case.grant(&longer));
    assert_eq!(delivered(&case.answered(&longer, &granted)), Some("second"));
    assert_eq!(delivered(&case.line.passed(&longer, case.now)), Some("third"));
}

/// Another primary may not know the grant.
#[test]
fn a_turn_of_a_server_that_was_left_is_not_passed_on() {
    for is_left in [false, true] {
        let mut case = case();
        case.joins(0, "first");
        case.joins(1, "second");
        let entry = case.queries(&sent());
        let epochs = Arc::<Epochs>::default();
        let grant = case.grant(&entry).of_epoch(Some(Arc::new(epochs.current())));
        assert_eq!(delivered(&case.granted_as(&entry, grant)), Some("first"));
        if is_left {
            epochs.begin(true);
        }
        assert_eq!(delivered(&case.line.passed(&entry, case.now)).is_none(), is_left);
    }
}

#[test]
fn a_turn_that_another_has_replaced_is_not_passed_on() {
    let mut case = case();
    let lost = case.given();
    case.joins(1, "second");
    case.joins(2, "third");
    let entry = case.queries(&sent());
    assert_eq!(delivered(&case.granted(&entry)), Some("second"));
    assert!(is_nothing(&case.line.passed(&lost, case.now)));
    let turn_end = case.releasing(&lost, &sent());
    assert!(turn_end.next.is_none());
    assert!(is_nothing(&case.line.released(&lost, turn_end, case.now)));
    assert_eq!(delivered(&case.line.passed(&entry, case.now)), Some("third"));
}

/// Its lock has ended, so an earlier query may have queued it again.
#[test]
fn a_turn_that_another_grant_has_replaced_is_withdrawn() {
    let mut case = case();
    let former = case.given();
    case.joins(1, "second");
    let entry = case.queries(&sent());
    let Actions { deliver, withdraw, .. } = case.granted(&entry);
    assert_eq!(deliver.map(|(name, _)| name), Some("second"));
    assert!(matches!(&*withdraw, [one] if Arc::ptr_eq(one, &former)));
}

fn local_permit() -> Arc<LocalPermit> {
    let permits_key = PermitsKey::of(&LockKey::from_static("k"), 0).unwrap();
    Arc::new(LocalPermit { permits_key, number: LocalNumber::OneOf(1), permits: 2 })
}

fn of_local_permit(local_permit: &Arc<LocalPermit>) -> Arc<Attempt> {
    let owner = OwnerToken::draw(None).unwrap();
    Arc::new(Attempt::in_local_permit(local_permit, Ttl::DEFAULT, owner))
}

/// While a slot moves, an attempt may be granted two permits. A withdrawal ends its hold of either.
#[test]
fn an_attempt_with_two_permits_gives_both_back() {
    let local_permit = local_permit();
    for (repeated, is_withdrawn) in [(1, false), (2, true)] {
        let mut case = case();
        case.joins(0, "first");
        let entry = case.queries(&of_local_permit(&local_permit));
        drop(case.queries(&entry));
        for (permit, call) in [(1, Some("first")), (repeated, None)] {
            let grant = case.grant(&entry).of_permit(Some(local_permit.permits_key.member(permit)));
            assert_eq!(delivered(&case.answered(&entry, &Enqueued::Granted(grant))), call);
        }
        let turn_end = case.releasing(&entry, &sent());
        let actions = case.line.released(&entry, turn_end, case.now);
        assert_eq!(actions.withdraw.len(), usize::from(is_withdrawn));
    }
}

#[test]
fn a_turn_with_another_permit_is_not_withdrawn() {
    let local_permit = local_permit();
    for (permit, withdrawn) in [(1, 1), (2, 0)] {
        let mut case = case();
        case.joins(0, "first");
        case.joins(1, "second");
        let mut granted = |permit| {
            let entry = case.queries(&of_local_permit(&local_permit));
            let grant = case.grant(&entry).of_permit(Some(local_permit.permits_key.member(permit)));
            case.answered(&entry, &Enqueued::Granted(grant))
        };
        assert_eq!(delivered(&granted(1)), Some("first"));
        let second = granted(permit);
        assert_eq!((delivered(&second), second.withdraw.len()), (Some("second"), withdrawn));
    }
}

#[test]
fn a_release_queues_the_line_again() {
    let mut case = case();
    let attempt = case.given();
    case.joins(1, "second");
    let next = sent();
    let turn_end = case.releasing(&attempt, &next);
    assert!(Arc::ptr_eq(turn_end.next.as_ref().unwrap(), &next));
    assert_eq!(case.due_in(), Some(RECHECK_INTERVAL));
    assert!(is_nothing(&case.line.released(&attempt, turn_end, case.now)));
    assert_eq!(case.due_in(), None, "it is queued");
    assert_eq!(delivered(&case.granted(&next)), Some("second"));
}

#[test]
fn the_grant_of_the_next_attempt_may_come_with_the_release() {
    let mut case = case();
    let attempt = case.given();
    case.joins(1, "second");
    let next = sent();
    let turn_end = case.releasing(&attempt, &next);
    let turn_end = TurnEnd { grant: Some(case.grant(&next)), ..turn_end };
    assert_eq!(delivered(&case.line.released(&attempt, turn_end, case.now)), Some("second"));
    assert_eq!(delivered(&case.line.passed(&next, case.now)), None);
}

#[test]
fn a_line_asks_at_once_after_a_release_that_did_not_queue_it() {
    let mut case = case();
    let attempt = case.given();
    let turn_end = case.releasing(&attempt, &sent());
    assert!(turn_end.next.is_none());
    case.joins(1, "second");
    assert_eq!(case.due_in(), Some(RECHECK_INTERVAL), "the turn continues");
    assert!(is_nothing(&case.line.released(&attempt, turn_end, case.now)));
    assert_eq!(case.due_in(), Some(Duration::ZERO));
}

#[test]
fn a_line_asks_at_once_after_a_release_without_an_answer() {
    let mut case = case();
    let attempt = case.given();
    case.joins(1, "second");
    let turn_end = case.releasing(&attempt, &sent());
    let turn_end = TurnEnd { is_answered: false, ..turn_end };
    assert!(is_nothing(&case.line.released(&attempt, turn_end, case.now)));
    assert_eq!(case.due_in(), Some(Duration::ZERO));
}

#[test]
fn a_line_queries_again_soon_after_a_minimum_hold() {
    let mut case = case();
    let attempt = case.given();
    attempt.min_hold.set_end(case.now.after(Duration::from_millis(50)));
    case.joins(1, "second");
    let turn_end = case.releasing(&attempt, &sent());
    assert!(turn_end.next.is_some());
    assert_eq!(case.due_in(), Some(Duration::from_millis(50)));
}

#[test]
fn a_next_place_that_was_given_up_meanwhile_is_withdrawn_again() {
    let mut case = case();
    let attempt = case.given();
    case.joins(1, "second");
    let turn_end = case.releasing(&attempt, &sent());
    let next = Arc::clone(turn_end.next.as_ref().unwrap());
    assert!(withdraws(&case.line.left(1, case.now), &[&next]));
    case.joins(2, "third");
    case.line.due = None;
    assert!(withdraws(&case.line.released(&attempt, turn_end, case.now), &[&next]));
    assert_eq!(case.due_in(), Some(Duration::ZERO), "the third is not queued");
}

/// See [`Line::releasing`].
#[test]
fn a_query_that_a_release_may_overtake_is_withdrawn() {
    let mut case = case();
    case.joins(0, "first");
    let attempt = case.queries(&sent());
    assert_eq!(delivered(&case.granted(&attempt)), Some("first"));
    let turn_end = case.releasing(&attempt, &sent());
    let granted = Enqueued::Granted(case.grant(&attempt));
    assert!(is_nothing(&case.answered(&attempt, &granted)));
    assert!(withdraws(&case.line.released(&attempt, turn_end, case.now), &[&attempt]));
    assert!(case.line.is_over());
}

/// Method: the query lands after an operator has deleted the lock that the release left taken.
#[test]
fn a_late_grant_is_given_back_without_a_minimum_hold() {
    for is_answered in [false, true] {
        let mut case = case();
        case.joins(0, "first");
        let attempt = case.queries(&sent());
        assert_eq!(delivered(&case.granted(&attempt)), Some("first"));
        attempt.min_hold.set_end(case.now.after(Duration::from_secs(3_600)));
        let turn_end = TurnEnd { is_answered, ..case.releasing(&attempt, &sent()) };
        let _ended = case.line.released(&attempt, turn_end, case.now);
        let late = Enqueued::Granted(case.grant(&attempt));
        assert!(releases(&case.answered(&attempt, &late), &attempt));
        assert_eq!(
            attempt.min_hold.is_set(),
            !is_answered,
            "a release that had no answer is repeated"
        );
    }
}

#[test]
fn a_query_that_lands_after_the_turn_is_released_or_withdrawn() {
    for is_granted in [true, false] {
        let mut case = case();
        case.joins(0, "first");
        let attempt = case.queries(&sent());
        assert_eq!(delivered(&case.granted(&attempt)), Some("first"));
        assert!(is_nothing(&case.line.deferred(&attempt, case.now)));
        assert!(!case.line.is_over());
        if is_granted {
            let answer = Enqueued::Granted(case.grant(&attempt));
            assert!(releases(&case.answered(&attempt, &answer), &attempt));
        } else {
            assert!(withdraws(&case.answered(&attempt, &BUSY), &[&attempt]));
        }
        assert!(case.line.is_over());
    }
}

#[test]
fn the_next_call_is_asked_for_after_each_end_of_a_turn() {
    type End = fn(&mut Line<&'static str>, &Arc<Attempt>, Moment) -> Actions<&'static str>;
    let ends: [(End, bool, bool); 3] =
        [(Line::deferred, false, false), (Line::lost, true, false), (Line::returned, true, true)];
    for (end, is_withdrawn, is_released) in ends {
        let mut case = case();
        let attempt = case.given();
        case.joins_as(1, "second", true);
        case.line.due = None;
        let actions = end(&mut case.line, &attempt, case.now);
        assert_eq!(actions.withdraw.len(), usize::from(is_withdrawn));
        assert_eq!(actions.release.is_some(), is_released);
        assert_eq!(case.due_in(), Some(Duration::ZERO));
        assert!(
            case.line
                .releasing(&attempt, Some(|_: &WaitingCall<_>| sent()), case.now)
                .next
                .is_none()
        );
    }
}
