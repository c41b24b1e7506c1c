//! Turns: what they are, passing them on, and how they end.

use super::*;
use crate::types::permit::{Family, Lane, LaneNumber};

#[test]
fn the_answer_and_the_message_of_a_grant_begin_one_turn() {
    for is_message_first in [true, false] {
        let mut case = case();
        case.joins(0, "first");
        case.joins(1, "second");
        let place = case.asks(&sent());
        let answer = Enqueued::Granted(case.grant(&place));
        let (first, second) = if is_message_first {
            (case.granted(&place).unwrap(), case.answered(&place, &answer))
        } else {
            (case.answered(&place, &answer), case.granted(&place).unwrap())
        };
        assert_eq!(delivered(&first), Some("first"));
        assert!(is_nothing(&second));
        assert_eq!(case.line.len(), 1);
    }
}

#[test]
fn a_turn_is_what_its_grant_says() {
    let mut case = case();
    case.joins(0, "first");
    let place = case.asks(&sent());
    case.after(20_000);
    let grant =
        Grant { fence: Reserved::turn(7), ttl: Ttl::DEFAULT.provisional(), ..case.grant(&place) };
    let (_, granted) = case.line.granted(&grant, case.now).unwrap().deliver.unwrap();
    assert_eq!(u64::from(granted.fencing_token), 7);
    assert_eq!((granted.since, granted.ttl), (grant.since, grant.ttl));
    assert!(!granted.is_passed_on && Arc::ptr_eq(&granted.attempt, &place));
    assert!(place.had_turn());
    let lapse = case.now.after(Ttl::DEFAULT.provisional().duration());
    assert_eq!(place.lapses_at(), Some(lapse));
    assert_eq!(case.due_in(), Some(RECHECK_INTERVAL));
}

#[test]
fn a_late_grant_of_a_place_that_was_given_up_is_released() {
    let mut case = case();
    case.joins(0, "first");
    let place = case.asks(&sent());
    assert!(withdraws(&case.line.left(0, case.now), &[&place]));
    case.joins(1, "second");
    let granted = Enqueued::Granted(case.grant(&place));
    assert!(releases(&case.answered(&place, &granted), &place));
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
        assert_eq!(u64::from(granted.fencing_token), 100 + pass);
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
    let place = case.asks(&sent());
    let grant = Grant { fence: Reserved { first: 7, passes: 0 }, ..case.grant(&place) };
    assert!(case.line.granted(&grant, case.now).unwrap().deliver.is_some());
    assert!(is_nothing(&case.line.passed(&place, case.now)));
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
        let attempt = case.asks(&sent());
        assert_eq!(delivered(&case.granted(&attempt).unwrap()), Some("first"));
        assert!(is_nothing(&case.line.passed(&attempt, case.now)));
    }
}

#[test]
fn a_lock_that_is_not_surely_held_is_not_passed_on() {
    let mut case = case();
    let start = case.now;
    let short = Ttl::new("expire", Duration::from_millis(100)).unwrap();
    for since in [None, Some(start)] {
        let mut line = Line::default();
        for number in 0..2 {
            let waiter = Waiter {
                number,
                ttl: short,
                is_fair: false,
                is_once: false,
                identity: None,
                label: Default::default(),
                answer: "a",
            };
            line.joined(waiter, Heard::Nothing, Behind::Holder, start);
        }
        let attempt = line.came_due(|_| sent()).unwrap();
        // It was on its way for as long as it lasts.
        let now = start.after(Duration::from_millis(100));
        let grant = Grant { since, ttl: short, ..case.grant(&attempt) };
        assert_eq!(delivered(&line.granted(&grant, now).unwrap()), Some("a"));
        assert!(is_nothing(&line.passed(&attempt, now)));
    }
    case.after(1);
}

#[test]
fn a_turn_that_another_has_replaced_is_not_passed_on() {
    let mut case = case();
    let lost = case.given();
    case.joins(1, "second");
    case.joins(2, "third");
    let place = case.asks(&sent());
    assert_eq!(delivered(&case.granted(&place).unwrap()), Some("second"));
    assert!(is_nothing(&case.line.passed(&lost, case.now)));
    let ending = case.ending(&lost, &sent());
    assert!(ending.next.is_none());
    assert!(is_nothing(&case.line.released(&lost, ending, case.now)));
    assert_eq!(delivered(&case.line.passed(&place, case.now)), Some("third"));
}

/// Its lock has ended, so an earlier question may have queued it again.
#[test]
fn a_turn_that_a_newer_grant_has_replaced_is_withdrawn() {
    for (fence, is_newer) in [(117, true), (100, false), (50, false)] {
        let mut case = case();
        let former = case.given();
        case.joins(1, "second");
        let place = case.asks(&sent());
        let grant = Grant { fence: Reserved::turn(fence), ..case.grant(&place) };
        let Actions { deliver, withdraw, .. } = case.line.granted(&grant, case.now).unwrap();
        assert_eq!(deliver.map(|(name, _)| name), Some("second"));
        let is_former = |attempt: &Arc<Attempt>| Arc::ptr_eq(attempt, &former);
        assert_eq!(withdraw.iter().map(is_former).collect::<Vec<_>>(), vec![true; is_newer.into()]);
    }
}

fn lane() -> Arc<Lane> {
    let family = Family::of(&LockKey::from_static("k"), 0).unwrap();
    Arc::new(Lane { family, number: LaneNumber::OneOf(1), permits: 2 })
}

fn of_lane(lane: &Arc<Lane>) -> Arc<Attempt> {
    let owner = OwnerToken::draw(None).unwrap();
    Arc::new(Attempt::in_lane(lane, Ttl::DEFAULT, owner))
}

/// While a slot moves, an attempt may be granted two permits. A withdrawal ends its hold of either.
#[test]
fn an_attempt_with_two_permits_gives_both_back() {
    let lane = lane();
    for (repeated, is_withdrawn) in [(1, false), (2, true)] {
        let mut case = case();
        case.joins(0, "first");
        let place = case.asks(&of_lane(&lane));
        assert!(is_nothing(&case.answered(&place, &BUSY)));
        for (permit, call) in [(1, Some("first")), (repeated, None)] {
            let grant = Grant { key: lane.family.member(permit), ..case.grant(&place) };
            assert_eq!(delivered(&case.line.granted(&grant, case.now).unwrap()), call);
        }
        let ending = case.ending(&place, &sent());
        let actions = case.line.released(&place, ending, case.now);
        assert_eq!(actions.withdraw.len(), usize::from(is_withdrawn));
    }
}

/// Each permit has a fence counter of its own, and is held beside the others.
#[test]
fn a_turn_with_another_permit_is_not_withdrawn() {
    let lane = lane();
    for (permit, withdrawn) in [(1, 1), (2, 0)] {
        let mut case = case();
        case.joins(0, "first");
        case.joins(1, "second");
        let mut granted = |permit, fence| {
            let place = case.asks(&of_lane(&lane));
            let (key, fence) = (lane.family.member(permit), Reserved::turn(fence));
            let grant = Grant { key, fence, ..case.grant(&place) };
            case.line.granted(&grant, case.now).unwrap()
        };
        assert_eq!(delivered(&granted(1, 7)), Some("first"));
        let second = granted(permit, 24);
        assert_eq!((delivered(&second), second.withdraw.len()), (Some("second"), withdrawn));
    }
}

#[test]
fn a_release_queues_the_line_again() {
    let mut case = case();
    let attempt = case.given();
    case.joins(1, "second");
    let next = sent();
    let ending = case.ending(&attempt, &next);
    assert!(Arc::ptr_eq(ending.next.as_ref().unwrap(), &next));
    assert_eq!(case.due_in(), Some(RECHECK_INTERVAL));
    assert!(is_nothing(&case.line.released(&attempt, ending, case.now)));
    assert_eq!(case.due_in(), None, "it is queued");
    assert_eq!(delivered(&case.granted(&next).unwrap()), Some("second"));
}

#[test]
fn the_grant_of_the_next_attempt_may_come_with_the_release() {
    let mut case = case();
    let attempt = case.given();
    case.joins(1, "second");
    let next = sent();
    let ending = case.ending(&attempt, &next);
    let ending = Ending { grant: Some(case.grant(&next)), ..ending };
    assert_eq!(delivered(&case.line.released(&attempt, ending, case.now)), Some("second"));
    assert_eq!(delivered(&case.line.passed(&next, case.now)), None);
}

#[test]
fn a_line_asks_at_once_after_a_release_that_did_not_queue_it() {
    let mut case = case();
    let attempt = case.given();
    let ending = case.ending(&attempt, &sent());
    assert!(ending.next.is_none());
    case.joins(1, "second");
    assert_eq!(case.due_in(), Some(RECHECK_INTERVAL), "the turn continues");
    assert!(is_nothing(&case.line.released(&attempt, ending, case.now)));
    assert_eq!(case.due_in(), Some(Duration::ZERO));
}

#[test]
fn a_line_asks_at_once_after_a_release_without_an_answer() {
    let mut case = case();
    let attempt = case.given();
    case.joins(1, "second");
    let ending = case.ending(&attempt, &sent());
    let ending = Ending { is_answered: false, ..ending };
    assert!(is_nothing(&case.line.released(&attempt, ending, case.now)));
    assert_eq!(case.due_in(), Some(Duration::ZERO));
}

#[test]
fn a_line_asks_again_soon_after_a_minimum_hold() {
    let mut case = case();
    let attempt = case.given();
    attempt.min_hold.set_end(case.now.after(Duration::from_millis(50)));
    case.joins(1, "second");
    let ending = case.ending(&attempt, &sent());
    assert!(ending.next.is_some());
    assert_eq!(case.due_in(), Some(Duration::from_millis(50)));
}

#[test]
fn a_next_place_that_was_given_up_meanwhile_is_withdrawn_again() {
    let mut case = case();
    let attempt = case.given();
    case.joins(1, "second");
    let ending = case.ending(&attempt, &sent());
    let next = Arc::clone(ending.next.as_ref().unwrap());
    assert!(withdraws(&case.line.left(1, case.now), &[&next]));
    case.joins(2, "third");
    case.line.due = None;
    assert!(withdraws(&case.line.released(&attempt, ending, case.now), &[&next]));
    assert_eq!(case.due_in(), Some(Duration::ZERO), "the third is not queued");
}

/// See [`Line::ending`].
#[test]
fn a_question_that_a_release_may_overtake_is_withdrawn() {
    let mut case = case();
    case.joins(0, "first");
    let attempt = case.asks(&sent());
    assert_eq!(delivered(&case.granted(&attempt).unwrap()), Some("first"));
    let ending = case.ending(&attempt, &sent());
    let granted = Enqueued::Granted(case.grant(&attempt));
    assert!(is_nothing(&case.answered(&attempt, &granted)));
    assert!(withdraws(&case.line.released(&attempt, ending, case.now), &[&attempt]));
    assert!(case.line.is_over());
}

/// Method: the question lands after an operator has deleted the lock that the release left taken.
#[test]
fn a_late_grant_is_given_back_without_a_minimum_hold() {
    for is_answered in [false, true] {
        let mut case = case();
        case.joins(0, "first");
        let attempt = case.asks(&sent());
        assert_eq!(delivered(&case.granted(&attempt).unwrap()), Some("first"));
        attempt.min_hold.set_end(case.now.after(Duration::from_secs(3_600)));
        let ending = Ending { is_answered, ..case.ending(&attempt, &sent()) };
        let _ended = case.line.released(&attempt, ending, case.now);
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
fn a_question_that_lands_after_the_turn_is_released_or_withdrawn() {
    for is_granted in [true, false] {
        let mut case = case();
        case.joins(0, "first");
        let attempt = case.asks(&sent());
        assert_eq!(delivered(&case.granted(&attempt).unwrap()), Some("first"));
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
        assert!(case.line.ending(&attempt, Some(|_: &Waiter<_>| sent()), case.now).next.is_none());
    }
}

/// See [`Line::claimed`].
#[test]
fn a_claimed_turn_is_asked_for_again() {
    let mut case = case();
    let attempt = case.given();
    case.joins(1, "second");
    case.joins(0, "first");
    let actions = case.line.claimed(&attempt, case.now);
    assert!(Arc::ptr_eq(actions.ask.as_ref().unwrap(), &attempt));
    assert!(matches!(case.line.heard, Heard::Nothing));
    let granted = Enqueued::Granted(Grant { fence: Reserved::turn(117), ..case.grant(&attempt) });
    assert_eq!(delivered(&case.answered(&attempt, &granted)), Some("first"));
}

#[test]
fn a_claimed_turn_may_have_lost_its_lock() {
    let mut case = case();
    let attempt = case.given();
    case.joins(0, "first");
    assert!(case.line.claimed(&attempt, case.now).ask.is_some());
    assert!(is_nothing(&case.answered(&attempt, &BUSY)));
    assert_eq!(case.line.place(), Some(&attempt.owner), "it is queued");
    let grant = Grant { fence: Reserved::turn(117), ..case.grant(&attempt) };
    assert_eq!(delivered(&case.line.granted(&grant, case.now).unwrap()), Some("first"));
}

#[test]
fn a_claimed_turn_beside_another_place_is_given_up() {
    let mut case = case();
    let attempt = case.given();
    case.joins(1, "second");
    let place = case.asks(&sent());
    case.joins(0, "first");
    assert!(withdraws(&case.line.claimed(&attempt, case.now), &[&attempt]));
    assert_eq!(delivered(&case.granted(&place).unwrap()), Some("first"));
}

/// An older question is answered after the claim began: its grant has older fencing tokens.
#[test]
fn a_grant_from_before_a_claim_is_ignored() {
    let mut case = case();
    case.joins(0, "first");
    let attempt = case.asks(&sent());
    let older = Arc::clone(&attempt);
    drop(case.asks(&sent()));
    let granted = |case: &Case, fence| Grant { fence, ..case.grant(&attempt) };
    let newer = Enqueued::Granted(granted(&case, Reserved::turn(34)));
    assert_eq!(delivered(&case.answered(&attempt, &newer)), Some("first"));
    case.joins(0, "first");
    assert!(case.line.claimed(&attempt, case.now).ask.is_some());
    let late = granted(&case, Reserved::turn(17));
    assert!(is_nothing(&case.line.granted(&late, case.now).unwrap()), "its message");
    assert!(is_nothing(&case.answered(&older, &Enqueued::Granted(late))), "its answer");
    let answer = Enqueued::Granted(granted(&case, Reserved::turn(51)));
    assert_eq!(delivered(&case.answered(&attempt, &answer)), Some("first"));
}

/// Someone else may have published it.
#[test]
fn a_grant_without_a_date_hides_no_later_one() {
    let mut case = case();
    case.joins(0, "first");
    let attempt = case.asks(&sent());
    let fence = Reserved { first: u64::MAX, passes: 0 };
    let undated = Grant { fence, since: None, ..case.grant(&attempt) };
    assert_eq!(delivered(&case.line.granted(&undated, case.now).unwrap()), Some("first"));
    case.joins(0, "first");
    assert!(case.line.claimed(&attempt, case.now).ask.is_some());
    let answer = Enqueued::Granted(case.grant(&attempt));
    assert_eq!(delivered(&case.answered(&attempt, &answer)), Some("first"));
}

#[test]
fn an_attempt_whose_fencing_tokens_go_back_is_given_up() {
    let mut case = case();
    let attempt = case.given();
    case.joins(0, "first");
    assert!(case.line.claimed(&attempt, case.now).ask.is_some());
    let answer = Enqueued::Granted(Grant { fence: Reserved::turn(50), ..case.grant(&attempt) });
    assert!(withdraws(&case.answered(&attempt, &answer), &[&attempt]));
    assert_eq!(case.line.place(), None);
    assert_eq!(case.due_in(), Some(Duration::ZERO));
}
