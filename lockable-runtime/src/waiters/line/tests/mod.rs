//! What a line asks for, event by event, without a server and without a clock.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::types::key::LockKey;
use crate::types::options::Ttl;

mod orders;
mod process;
mod store;

/// A line whose calls are answered by nothing, and the moment of the next event.
struct Told {
    line: Line<&'static str>,
    now: Moment,
}

fn told() -> Told {
    Told { line: Line::default(), now: Moment::from_nanos(1_000_000_000) }
}

/// An attempt whose first request was sent.
fn sent() -> Arc<Attempt> {
    let attempt = Attempt::drawn(LockKey::from_static("k"), Ttl::DEFAULT);
    attempt.mark_sent(Moment::from_nanos(1_000_000_000));
    Arc::new(attempt)
}

const BUSY: Enqueued = Enqueued::Queued { remaining: None };

impl Told {
    fn after(&mut self, millis: u64) -> Moment {
        self.now = self.now.after(Duration::from_millis(millis));
        self.now
    }

    fn joins(&mut self, number: u64, name: &'static str) {
        self.joins_as(number, name, false);
    }

    fn joins_as(&mut self, number: u64, name: &'static str, is_fair: bool) {
        let waiter = Waiter { number, ttl: Ttl::DEFAULT, is_fair, identity: None, answer: name };
        self.line.joined(waiter, Heard::Nothing, self.now);
    }

    /// The line asks about this attempt, or about the one it has a place for.
    fn asks(&mut self, new: &Arc<Attempt>) -> Arc<Attempt> {
        self.line.due = None;
        self.line.came_due(|_| Arc::clone(new)).unwrap()
    }

    fn grant(&self, attempt: &Attempt) -> Grant {
        Grant::answered(attempt, 100, self.now, attempt.ttl)
    }

    /// A message says that the attempt was granted.
    fn granted(&mut self, attempt: &Attempt) -> Option<Actions<&'static str>> {
        self.line.granted(&self.grant(attempt), self.now)
    }

    fn answered(&mut self, attempt: &Arc<Attempt>, answer: &Enqueued) -> Actions<&'static str> {
        self.line.answered(attempt, answer, self.now)
    }

    /// A first call waits, and its place is granted after its question was answered.
    fn given(&mut self) -> Arc<Attempt> {
        self.joins(0, "first");
        let attempt = self.asks(&sent());
        assert!(is_nothing(&self.answered(&attempt, &BUSY)));
        let actions = self.granted(&attempt).unwrap();
        assert_eq!(delivered(&actions), Some("first"));
        attempt
    }

    fn due_in(&mut self) -> Option<Duration> {
        self.line.due.take().map(|due| due.since(self.now))
    }

    /// The release begins, with this attempt to queue, where a call waits.
    fn ending(&mut self, attempt: &Attempt, next: &Arc<Attempt>) -> Ending {
        let ending = self.line.ending(attempt, Some(|_: &Waiter<_>| Arc::clone(next)), self.now);
        Ending { is_answered: true, ..ending }
    }
}

fn delivered(actions: &Actions<&'static str>) -> Option<&'static str> {
    actions.deliver.as_ref().map(|(name, _)| *name)
}

fn is_nothing(actions: &Actions<&'static str>) -> bool {
    let Actions { deliver, ask, withdraw, release, refuse } = actions;
    let asks = ask.is_some() || release.is_some() || !withdraw.is_empty();
    deliver.is_none() && refuse.is_none() && !asks
}

fn withdraws(actions: &Actions<&'static str>, attempts: &[&Arc<Attempt>]) -> bool {
    let others = actions.deliver.is_some() || actions.release.is_some() || actions.ask.is_some();
    let same = |(one, other): (&Arc<Attempt>, &&Arc<Attempt>)| Arc::ptr_eq(one, other);
    let is_same_length = actions.withdraw.len() == attempts.len();
    !others && is_same_length && actions.withdraw.iter().zip(attempts).all(same)
}

fn releases(actions: &Actions<&'static str>, attempt: &Arc<Attempt>) -> bool {
    actions.release.as_ref().is_some_and(|released| Arc::ptr_eq(released, attempt))
        && actions.withdraw.is_empty()
        && actions.deliver.is_none()
}

#[test]
fn a_line_asks_at_once_and_for_one_place() {
    let mut told = told();
    told.joins(0, "first");
    assert_eq!(told.due_in(), Some(Duration::ZERO));
    let place = told.asks(&sent());
    told.joins(1, "second");
    assert_eq!(told.due_in(), None);
    assert!(Arc::ptr_eq(&place, &told.asks(&sent())));
    assert_eq!(told.line.place(), Some(&place.owner));
}

#[test]
fn no_call_no_question() {
    let mut told = told();
    assert!(told.line.came_due(|_| unreachable!("no call waits")).is_none());
    assert!(told.line.is_over());
}

#[test]
fn a_queued_line_asks_when_the_holders_lease_ends() {
    for (remaining, due) in [(None, 800), (Some(5_000), 800), (Some(300), 300)] {
        let mut told = told();
        told.joins(0, "first");
        let place = told.asks(&sent());
        let remaining = remaining.map(Duration::from_millis);
        assert!(is_nothing(&told.answered(&place, &Enqueued::Queued { remaining })));
        assert_eq!(told.due_in(), Some(Duration::from_millis(due)));
        assert!(matches!(told.line.heard, Heard::Busy));
    }
}

#[test]
fn the_answer_and_the_message_of_a_grant_begin_one_turn() {
    for is_message_first in [true, false] {
        let mut told = told();
        told.joins(0, "first");
        told.joins(1, "second");
        let place = told.asks(&sent());
        let answer = Enqueued::Granted(told.grant(&place));
        let (first, second) = if is_message_first {
            (told.granted(&place).unwrap(), told.answered(&place, &answer))
        } else {
            (told.answered(&place, &answer), told.granted(&place).unwrap())
        };
        assert_eq!(delivered(&first), Some("first"));
        assert!(is_nothing(&second));
        assert_eq!(told.line.len(), 1);
    }
}

#[test]
fn a_turn_is_what_its_grant_says() {
    let mut told = told();
    told.joins(0, "first");
    let place = told.asks(&sent());
    let grant = Grant { fence: 7, ttl: Ttl::DEFAULT.provisional(), ..told.grant(&place) };
    let (_, granted) = told.line.granted(&grant, told.now).unwrap().deliver.unwrap();
    assert_eq!(u64::from(granted.fencing_token), 7);
    assert_eq!((granted.since, granted.ttl), (grant.since, grant.ttl));
    assert!(!granted.is_passed_on && Arc::ptr_eq(&granted.attempt, &place));
    assert!(place.had_turn());
    assert_eq!(told.due_in(), Some(RECHECK_INTERVAL));
}

#[test]
fn a_grant_from_before_the_clock_was_set_back_counts_from_nowhere() {
    let mut told = told();
    told.joins(0, "first");
    let place = told.asks(&sent());
    let counts_from = told.after(1);
    let grant = Grant { counts_from, ..told.grant(&place) };
    let (_, granted) = told.line.granted(&grant, told.now).unwrap().deliver.unwrap();
    assert_eq!(granted.since, None);
}

#[test]
fn another_grant_is_unwanted() {
    let mut told = told();
    told.joins(0, "first");
    let place = told.asks(&sent());
    assert!(told.granted(&sent()).is_none());
    assert_eq!(told.line.place(), Some(&place.owner));
}

/// See [`Line::left`].
#[test]
fn a_grant_that_crosses_a_withdrawal_is_unwanted() {
    let mut told = told();
    told.joins(0, "first");
    let place = told.asks(&sent());
    assert!(is_nothing(&told.answered(&place, &BUSY)));
    assert!(withdraws(&told.line.left(0, told.now), &[&place]));
    assert!(told.line.is_over());
    assert!(told.granted(&place).is_none());
}

#[test]
fn a_question_that_a_withdrawal_may_overtake_is_withdrawn_again() {
    let mut told = told();
    told.joins(0, "first");
    let place = told.asks(&sent());
    assert!(withdraws(&told.line.left(0, told.now), &[&place]));
    assert!(!told.line.is_over(), "a question has no answer");
    assert!(withdraws(&told.answered(&place, &BUSY), &[&place]));
    assert!(told.line.is_over());
}

#[test]
fn a_late_grant_of_a_place_that_was_given_up_is_released() {
    let mut told = told();
    told.joins(0, "first");
    let place = told.asks(&sent());
    assert!(withdraws(&told.line.left(0, told.now), &[&place]));
    told.joins(1, "second");
    let granted = Enqueued::Granted(told.grant(&place));
    assert!(releases(&told.answered(&place, &granted), &place));
    assert_eq!(told.line.len(), 1);
}

#[test]
fn a_place_is_kept_while_another_call_waits() {
    let mut told = told();
    told.joins(0, "first");
    told.joins(1, "second");
    let place = told.asks(&sent());
    assert!(is_nothing(&told.line.left(0, told.now)));
    assert_eq!(delivered(&told.granted(&place).unwrap()), Some("second"));
}

#[test]
fn a_call_that_comes_back_has_its_old_place() {
    let mut told = told();
    told.joins(2, "third");
    told.joins(0, "first");
    told.joins(1, "second");
    let place = told.asks(&sent());
    assert_eq!(delivered(&told.granted(&place).unwrap()), Some("first"));
    assert_eq!(delivered(&told.line.returned(&place, told.now)), Some("second"));
}

#[test]
fn a_turn_that_no_call_receives_is_passed_to_the_next() {
    let mut told = told();
    let attempt = told.given();
    told.joins(1, "second");
    let passed = told.line.left(0, told.now);
    assert_eq!(delivered(&passed), Some("second"));
    assert!(is_nothing(&told.line.left(0, told.now)), "it has left");
    assert!(releases(&told.line.left(1, told.now), &attempt));
    assert!(told.line.is_over());
}

#[test]
fn a_turn_is_passed_on_with_the_next_fencing_token() {
    let mut told = told();
    let attempt = told.given();
    for pass in 1..=16 {
        told.joins(pass, "next");
        let (_, granted) = told.line.passed(&attempt, told.now).deliver.unwrap();
        assert_eq!(u64::from(granted.fencing_token), 100 + pass);
        assert!(granted.is_passed_on);
    }
    told.joins(17, "last");
    assert!(is_nothing(&told.line.passed(&attempt, told.now)));
}

#[test]
fn a_turn_is_passed_on_for_five_milliseconds() {
    for (millis, is_passed) in [(4, true), (5, false)] {
        let mut told = told();
        let attempt = told.given();
        told.joins(1, "second");
        let now = told.after(millis);
        assert_eq!(delivered(&told.line.passed(&attempt, now)).is_some(), is_passed);
    }
}

#[test]
fn a_fair_call_neither_takes_nor_gives_a_pass() {
    for (first, second) in [(true, false), (false, true)] {
        let mut told = told();
        told.joins_as(0, "first", first);
        told.joins_as(1, "second", second);
        let attempt = told.asks(&sent());
        assert_eq!(delivered(&told.granted(&attempt).unwrap()), Some("first"));
        assert!(is_nothing(&told.line.passed(&attempt, told.now)));
    }
}

#[test]
fn a_lock_that_is_not_surely_held_is_not_passed_on() {
    let mut told = told();
    let start = told.now;
    let short = Ttl::new("expire", Duration::from_millis(100)).unwrap();
    for since in [None, Some(start)] {
        let mut line = Line::default();
        for number in 0..2 {
            let waiter = Waiter { number, ttl: short, is_fair: false, identity: None, answer: "a" };
            line.joined(waiter, Heard::Nothing, start);
        }
        let attempt = line.came_due(|_| sent()).unwrap();
        // It was on its way for as long as it lasts.
        let now = start.after(Duration::from_millis(100));
        let grant = Grant { since, ttl: short, ..told.grant(&attempt) };
        assert_eq!(delivered(&line.granted(&grant, now).unwrap()), Some("a"));
        assert!(is_nothing(&line.passed(&attempt, now)));
    }
    told.after(1);
}

#[test]
fn a_turn_that_another_has_replaced_is_not_passed_on() {
    let mut told = told();
    let lost = told.given();
    told.joins(1, "second");
    told.joins(2, "third");
    let place = told.asks(&sent());
    assert_eq!(delivered(&told.granted(&place).unwrap()), Some("second"));
    assert!(is_nothing(&told.line.passed(&lost, told.now)));
    let ending = told.ending(&lost, &sent());
    assert!(ending.next.is_none());
    assert!(is_nothing(&told.line.released(&lost, ending, told.now)));
    assert_eq!(delivered(&told.line.passed(&place, told.now)), Some("third"));
}

#[test]
fn a_release_queues_the_line_again() {
    let mut told = told();
    let attempt = told.given();
    told.joins(1, "second");
    let next = sent();
    let ending = told.ending(&attempt, &next);
    assert!(Arc::ptr_eq(ending.next.as_ref().unwrap(), &next));
    assert_eq!(told.due_in(), Some(RECHECK_INTERVAL));
    assert!(is_nothing(&told.line.released(&attempt, ending, told.now)));
    assert_eq!(told.due_in(), None, "it is queued");
    assert_eq!(delivered(&told.granted(&next).unwrap()), Some("second"));
}

#[test]
fn the_grant_of_the_next_attempt_may_come_with_the_release() {
    let mut told = told();
    let attempt = told.given();
    told.joins(1, "second");
    let next = sent();
    let ending = told.ending(&attempt, &next);
    let ending = Ending { grant: Some(told.grant(&next)), ..ending };
    assert_eq!(delivered(&told.line.released(&attempt, ending, told.now)), Some("second"));
    assert_eq!(delivered(&told.line.passed(&next, told.now)), None);
}

#[test]
fn a_line_asks_at_once_after_a_release_that_did_not_queue_it() {
    let mut told = told();
    let attempt = told.given();
    let ending = told.ending(&attempt, &sent());
    assert!(ending.next.is_none());
    told.joins(1, "second");
    assert_eq!(told.due_in(), Some(RECHECK_INTERVAL), "the turn continues");
    assert!(is_nothing(&told.line.released(&attempt, ending, told.now)));
    assert_eq!(told.due_in(), Some(Duration::ZERO));
}

#[test]
fn a_line_asks_at_once_after_a_release_without_an_answer() {
    let mut told = told();
    let attempt = told.given();
    told.joins(1, "second");
    let ending = told.ending(&attempt, &sent());
    let ending = Ending { is_answered: false, ..ending };
    assert!(is_nothing(&told.line.released(&attempt, ending, told.now)));
    assert_eq!(told.due_in(), Some(Duration::ZERO));
}

#[test]
fn a_line_asks_again_soon_after_a_minimum_hold() {
    let mut told = told();
    let attempt = told.given();
    attempt.min_hold.set_end(told.now.after(Duration::from_millis(50)));
    told.joins(1, "second");
    let ending = told.ending(&attempt, &sent());
    assert!(ending.next.is_some());
    assert_eq!(told.due_in(), Some(Duration::from_millis(50)));
}

#[test]
fn a_next_place_that_was_given_up_meanwhile_is_withdrawn_again() {
    let mut told = told();
    let attempt = told.given();
    told.joins(1, "second");
    let ending = told.ending(&attempt, &sent());
    let next = Arc::clone(ending.next.as_ref().unwrap());
    assert!(withdraws(&told.line.left(1, told.now), &[&next]));
    told.joins(2, "third");
    told.line.due = None;
    assert!(withdraws(&told.line.released(&attempt, ending, told.now), &[&next]));
    assert_eq!(told.due_in(), Some(Duration::ZERO), "the third is not queued");
}

/// See [`Line::ending`].
#[test]
fn a_question_that_a_release_may_overtake_is_withdrawn() {
    let mut told = told();
    told.joins(0, "first");
    let attempt = told.asks(&sent());
    assert_eq!(delivered(&told.granted(&attempt).unwrap()), Some("first"));
    let ending = told.ending(&attempt, &sent());
    let granted = Enqueued::Granted(told.grant(&attempt));
    assert!(is_nothing(&told.answered(&attempt, &granted)));
    assert!(withdraws(&told.line.released(&attempt, ending, told.now), &[&attempt]));
    assert!(told.line.is_over());
}

#[test]
fn a_question_without_an_answer_counts_as_under_way() {
    let mut told = told();
    told.joins(0, "first");
    let attempt = told.asks(&sent());
    let fault = Fault::unavailable("no answer");
    assert!(is_nothing(&told.line.failed(Some(&attempt), &fault, told.now)));
    assert!(!told.line.question_ends(&attempt, false));
    assert_eq!(delivered(&told.granted(&attempt).unwrap()), Some("first"));
    let ending = told.ending(&attempt, &sent());
    assert!(withdraws(&told.line.released(&attempt, ending, told.now), &[&attempt]));
}

#[test]
fn a_question_that_was_never_sent_is_forgotten() {
    let mut told = told();
    told.joins(0, "first");
    let unsent = Arc::new(Attempt::drawn(LockKey::from_static("k"), Ttl::DEFAULT));
    let attempt = told.asks(&unsent);
    assert!(!told.line.question_ends(&attempt, false));
    assert_eq!(delivered(&told.granted(&attempt).unwrap()), Some("first"));
    let ending = told.ending(&attempt, &sent());
    assert!(is_nothing(&told.line.released(&attempt, ending, told.now)));
}

#[test]
fn a_question_that_lands_after_the_turn_is_released_or_withdrawn() {
    for is_granted in [true, false] {
        let mut told = told();
        told.joins(0, "first");
        let attempt = told.asks(&sent());
        assert_eq!(delivered(&told.granted(&attempt).unwrap()), Some("first"));
        assert!(is_nothing(&told.line.deferred(&attempt, told.now)));
        assert!(!told.line.is_over());
        if is_granted {
            let answer = Enqueued::Granted(told.grant(&attempt));
            assert!(releases(&told.answered(&attempt, &answer), &attempt));
        } else {
            assert!(withdraws(&told.answered(&attempt, &BUSY), &[&attempt]));
        }
        assert!(told.line.is_over());
    }
}

#[test]
fn the_next_call_is_asked_for_after_each_end_of_a_turn() {
    type End = fn(&mut Line<&'static str>, &Arc<Attempt>, Moment) -> Actions<&'static str>;
    let ends: [(End, bool, bool); 3] =
        [(Line::deferred, false, false), (Line::lost, true, false), (Line::returned, false, true)];
    for (end, is_withdrawn, is_released) in ends {
        let mut told = told();
        let attempt = told.given();
        told.joins_as(1, "second", true);
        told.line.due = None;
        let actions = end(&mut told.line, &attempt, told.now);
        assert_eq!(actions.withdraw.len(), usize::from(is_withdrawn));
        assert_eq!(actions.release.is_some(), is_released);
        assert_eq!(told.due_in(), Some(Duration::ZERO));
        assert!(told.line.ending(&attempt, Some(|_: &Waiter<_>| sent()), told.now).next.is_none());
    }
}

/// See [`Line::doubted`].
#[test]
fn a_doubted_turn_is_asked_for_again() {
    let mut told = told();
    let attempt = told.given();
    told.joins(1, "second");
    told.joins(0, "first");
    let actions = told.line.doubted(&attempt, told.now);
    assert!(Arc::ptr_eq(actions.ask.as_ref().unwrap(), &attempt));
    assert!(matches!(told.line.heard, Heard::Nothing));
    let granted = Enqueued::Granted(told.grant(&attempt));
    assert_eq!(delivered(&told.answered(&attempt, &granted)), Some("first"));
}

#[test]
fn a_doubted_turn_may_have_lost_its_lock() {
    let mut told = told();
    let attempt = told.given();
    told.joins(0, "first");
    assert!(told.line.doubted(&attempt, told.now).ask.is_some());
    assert!(is_nothing(&told.answered(&attempt, &BUSY)));
    assert_eq!(told.line.place(), Some(&attempt.owner), "it is queued");
    assert_eq!(delivered(&told.granted(&attempt).unwrap()), Some("first"));
}

#[test]
fn a_doubted_turn_beside_another_place_is_given_up() {
    let mut told = told();
    let attempt = told.given();
    told.joins(1, "second");
    let place = told.asks(&sent());
    told.joins(0, "first");
    assert!(withdraws(&told.line.doubted(&attempt, told.now), &[&attempt]));
    assert_eq!(delivered(&told.granted(&place).unwrap()), Some("first"));
}

#[test]
fn a_line_asks_again_after_a_fault_and_gives_up_after_half_a_minute() {
    let mut told = told();
    told.joins(0, "first");
    told.joins(1, "second");
    let fault = Fault::unavailable("no answer");
    let place = told.asks(&sent());
    for after in [0, 10_000, 19_999] {
        let now = told.after(after);
        assert!(is_nothing(&told.line.failed(Some(&place), &fault, now)));
        assert_eq!(told.due_in(), Some(RECHECK_INTERVAL / 5));
        assert!(matches!(told.line.heard, Heard::Fault(_)));
    }
    let now = told.after(1);
    let actions = told.line.failed(Some(&place), &fault, now);
    let (_, refused) = actions.refuse.as_ref().unwrap();
    let names: Vec<_> = refused.iter().map(|waiter| waiter.answer).collect();
    assert_eq!(names, ["first", "second"]);
    assert!(withdraws(&actions, &[&place]));
    assert!(told.line.question_ends(&place, false) && told.line.is_over());
}

#[test]
fn an_answer_starts_the_half_minute_again() {
    let mut told = told();
    told.joins(0, "first");
    let fault = Fault::unavailable("no answer");
    let place = told.asks(&sent());
    assert!(is_nothing(&told.line.failed(Some(&place), &fault, told.now)));
    told.after(29_000);
    assert!(is_nothing(&told.answered(&place, &BUSY)));
    let place = told.asks(&place);
    let now = told.after(2_000);
    assert!(is_nothing(&told.line.failed(Some(&place), &fault, now)));
}

#[test]
fn a_refusal_ends_every_call_at_once() {
    let mut told = told();
    told.joins(0, "first");
    let refused = Fault::new(LockErrorKind::Refused, "no right");
    let actions = told.line.failed(None, &refused, told.now);
    assert_eq!(actions.refuse.unwrap().1.len(), 1);
    assert!(told.line.is_over());
}

#[test]
fn a_fault_of_a_leftover_withdraws_it() {
    let mut told = told();
    told.joins(0, "first");
    let place = told.asks(&sent());
    assert!(withdraws(&told.line.left(0, told.now), &[&place]));
    let fault = Fault::unavailable("no answer");
    assert!(withdraws(&told.line.failed(Some(&place), &fault, told.now), &[&place]));
    assert_eq!(told.due_in(), None, "no call waits");
}

#[test]
fn what_a_newcomer_has_heard_is_known_to_the_line() {
    let mut told = told();
    let heard = |told: &mut Told, number, heard| {
        let waiter =
            Waiter { number, ttl: Ttl::DEFAULT, is_fair: false, identity: None, answer: "" };
        told.line.joined(waiter, heard, told.now);
    };
    heard(&mut told, 0, Heard::Nothing);
    assert!(matches!(told.line.heard, Heard::Nothing));
    heard(&mut told, 1, Heard::Fault(Box::new(Fault::unavailable("no answer"))));
    assert!(matches!(told.line.heard, Heard::Fault(_)));
    heard(&mut told, 2, Heard::Nothing);
    assert!(matches!(told.line.heard, Heard::Fault(_)));
    heard(&mut told, 3, Heard::Busy);
    assert!(matches!(told.line.heard, Heard::Busy));
}
