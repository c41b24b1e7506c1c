//! Every history of a lease keeps the rule: it counts as held only while an answer says so.

use proptest::prelude::*;

use super::*;
use crate::core::types::error::LockErrorKind;

const TTL: Ttl = Ttl::DEFAULT;

fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

fn lease() -> LeaseState {
    LeaseState::new(at(0), TTL, None)
}

#[test]
fn a_lease_is_held_until_its_own_deadline() {
    let mut lease = lease();
    assert_eq!(lease.status(at(9_897)), Status::Held(Duration::from_millis(1)));
    assert_eq!(lease.status(at(9_898)), Status::Lost(Loss::Deadline));
}

#[test]
fn a_renewal_counts_from_its_sending() {
    let mut lease = lease();
    lease.renewed(at(4_000), TTL, at(9_000));
    assert_eq!(lease.status(at(9_000)), Status::Held(Duration::from_millis(4_898)));
}

#[test]
fn an_answer_after_the_deadline_renews_nothing() {
    let mut lease = lease();
    lease.renewed(at(9_000), TTL, at(9_898));
    assert_eq!(lease.status(at(9_898)), Status::Lost(Loss::Deadline));
}

#[test]
fn a_renewal_never_shortens_a_lease() {
    let mut lease = lease();
    lease.renewed(at(1_000), Ttl::MIN, at(1_001));
    assert_eq!(lease.status(at(1_001)), Status::Held(Duration::from_millis(8_897)));
}

#[test]
fn an_end_is_near_by_the_deadline_or_by_the_longest_hold() {
    let millis = Duration::from_millis;
    let (none, second) = (Duration::ZERO, millis(1_000));
    let mut lease = lease();
    assert_eq!(lease.ending(second, second, at(8_000)), LeaseEnd::Far(millis(898)));
    assert_eq!(lease.ending(second, second, at(8_898)), LeaseEnd::Near(second));
    assert_eq!(lease.ending(none, none, at(9_897)), LeaseEnd::Far(millis(1)));
    let over = LeaseEnd::Over(Status::Lost(Loss::Deadline));
    assert_eq!(lease.ending(second, second, at(9_898)), over);
    let mut limited = LeaseState::new(at(0), TTL, Some(at(5_000)));
    assert_eq!(limited.ending(second, second, at(1_000)), LeaseEnd::Far(millis(3_000)));
    assert_eq!(limited.ending(second, second, at(4_500)), LeaseEnd::Near(millis(500)));
    assert_eq!(limited.ending(none, none, at(5_000)), LeaseEnd::Over(Status::MaxHoldReached));
    // The deadline is near, and the end of the longest hold is not.
    assert_eq!(limited.ending(millis(8_000), none, at(2_000)), LeaseEnd::Near(millis(7_898)));
}

#[test]
fn a_longest_hold_may_count_from_a_later_moment() {
    let mut lease = lease();
    lease.hold_until(Some(at(5_000)));
    assert_eq!(lease.status(at(4_999)), Status::Held(Duration::from_millis(1)));
    assert_eq!(lease.status(at(5_000)), Status::MaxHoldReached);
}

#[test]
fn the_age_of_a_lease_counts_from_its_last_renewal() {
    const AGE: Duration = Duration::from_secs(3);
    let mut lease = lease();
    assert!(!lease.is_older(AGE, at(2_999)) && lease.is_older(AGE, at(3_000)));
    lease.renewed(at(2_000), TTL, at(2_500));
    assert!(!lease.is_older(AGE, at(4_999)) && lease.is_older(AGE, at(5_000)));
}

#[test]
fn the_used_share_is_that_of_the_newest_lease() {
    let used = |lease: &LeaseState, millis| format!("{:.2}", lease.used(at(millis)));
    let mut lease = lease();
    assert_eq!(used(&lease, 4_949), "0.50");
    lease.renewed(at(4_949), TTL, at(5_000));
    assert_eq!([4_949, 9_898, 14_847].map(|millis| used(&lease, millis)), ["0.00", "0.50", "1.00"]);
}

#[test]
fn a_lease_is_confirmed_by_the_latest_request() {
    const RECENTLY: Duration = Duration::from_millis(800);
    let mut lease = lease();
    assert!(lease.is_confirmed(at(799), RECENTLY) && !lease.is_confirmed(at(800), RECENTLY));
    lease.confirmed(at(4_000));
    lease.confirmed(at(3_000));
    assert!(lease.is_confirmed(at(4_799), RECENTLY) && !lease.is_confirmed(at(4_800), RECENTLY));
    lease.release(at(4_001));
    assert!(!lease.is_confirmed(at(4_002), RECENTLY));
}

#[test]
fn a_lease_that_is_over_is_not_confirmed() {
    let mut lease = lease();
    lease.confirmed(at(9_897));
    assert!(lease.is_confirmed(at(9_897), TTL.duration()));
    assert!(!lease.is_confirmed(at(9_898), TTL.duration()));
}

#[test]
fn the_first_loss_is_the_one_that_counts() {
    let mut lease = lease();
    lease.refused(Loss::Taken, at(5));
    lease.refused(Loss::Absent, at(6));
    assert_eq!(lease.status(at(99_999)), Status::Lost(Loss::Taken));
}

/// A ticket may have the lock by then, which is no loss; only the answer decides whether it has.
#[test]
fn what_renewals_find_is_no_loss_while_a_lock_is_passed_on() {
    let mut lease = lease();
    lease.is_passing = true;
    lease.refused(Loss::Taken, at(1_000));
    lease.refused(Loss::Absent, at(1_000));
    assert!(lease.is_holding(at(1_000)));
    assert_eq!(lease.status(at(9_898)), Status::Lost(Loss::Deadline));
    let mut kept = self::lease();
    kept.is_passing = true;
    kept.is_passing = false;
    kept.refused(Loss::Taken, at(1_000));
    assert_eq!(kept.status(at(1_000)), Status::Lost(Loss::Taken));
}

#[test]
fn a_failed_renewal_is_the_reason_until_an_answer() {
    let cause = |text: &'static str| Arc::new(LockError::new(LockErrorKind::Unavailable, text));
    let mut lease = lease();
    lease.unanswered(&cause("first"));
    lease.renewed(at(4_000), TTL, at(4_001));
    assert!(lease.unrenewed.as_ref().is_none());
    lease.unanswered(&cause("second"));
    assert_eq!(lease.status(at(99_999)), Status::Lost(Loss::Deadline));
    lease.unanswered(&cause("too late"));
    assert_eq!(lease.unrenewed.as_ref().unwrap().to_string(), "second");
}

#[test]
fn the_longest_hold_stops_a_renewed_lease() {
    let mut lease = LeaseState::new(at(0), TTL, Some(at(12_000)));
    lease.renewed(at(9_000), TTL, at(9_001));
    assert_eq!(lease.status(at(11_999)), Status::Held(Duration::from_millis(1)));
    assert_eq!(lease.status(at(12_000)), Status::MaxHoldReached);
    // It is not lost yet: its body is dropped, and then it is released.
    lease.release(at(12_001));
    assert_eq!(lease.status(at(99_999)), Status::Released);
}

#[test]
fn a_revoked_lease_is_held_until_its_release() {
    let mut lease = lease();
    assert!(lease.revoke(&Reason::new("first"), at(5)));
    assert!(!lease.revoke(&Reason::new("again"), at(6)));
    assert_eq!(lease.status(at(6)), Status::Revoked);
    assert_eq!(lease.reason, Some(Reason::new("first")));
    assert!(lease.is_holding(at(6)) && lease.may_renew(at(6)));
    lease.release(at(7));
    assert_eq!(lease.status(at(99_999)), Status::Released);
    assert!(lease.is_revoked() && !lease.may_renew(at(8)));
}

#[test]
fn a_holder_that_was_asked_and_stays_is_renewed() {
    let mut lease = LeaseState::new(at(0), TTL, Some(at(12_000)));
    lease.revoke(&Reason::new("why"), at(5));
    lease.renewed(at(9_000), TTL, at(9_001));
    assert_eq!(lease.status(at(11_999)), Status::Revoked);
    assert!(lease.may_renew(at(11_999)) && !lease.may_renew(at(12_000)));
    assert_eq!(lease.status(at(12_000)), Status::Revoked);
    assert_eq!(lease.status(at(18_898)), Status::Lost(Loss::Deadline));
}

#[test]
fn what_has_ended_is_not_revoked() {
    let ends: [fn(&mut LeaseState); 3] = [
        |lease| lease.refused(Loss::Absent, at(5)),
        |lease| lease.release(at(5)),
        |lease| lease.force(&Reason::new("taken"), at(5)),
    ];
    for end in ends {
        let mut lease = lease();
        end(&mut lease);
        let before = lease.status(at(5));
        assert!(!lease.revoke(&Reason::new("late"), at(6)) && !lease.is_revoked());
        assert_eq!(lease.status(at(6)), before);
        assert_ne!(lease.reason, Some(Reason::new("late")));
    }
    let mut lease = LeaseState::new(at(0), TTL, Some(at(5)));
    assert!(!lease.revoke(&Reason::new("late"), at(5)));
    assert_eq!(lease.status(at(5)), Status::MaxHoldReached);
}

#[test]
fn a_lock_that_was_taken_away_is_lost_at_once() {
    let mut lease = lease();
    lease.revoke(&Reason::new("please"), at(5));
    lease.force(&Reason::new("now"), at(6));
    assert_eq!(lease.status(at(6)), Status::Lost(Loss::Forced));
    assert_eq!(lease.reason, Some(Reason::new("now")));
}

#[derive(Clone, Debug)]
enum Event {
    Look,
    Renewed(u64, Ttl),
    Refused(Loss),
    Revoke,
    Force,
    Release,
}

fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let ttl = (10_u64..20_000).prop_map(|millis| {
        Ttl::new("expire", Duration::from_millis(millis)).expect("is long enough")
    });
    let loss = prop_oneof![Just(Loss::Absent), Just(Loss::Taken)];
    let event = prop_oneof![
        4 => Just(Event::Look),
        8 => (0_u64..6_000, ttl).prop_map(|(ago, ttl)| Event::Renewed(ago, ttl)),
        1 => loss.prop_map(Event::Refused),
        1 => Just(Event::Revoke),
        1 => Just(Event::Force),
        1 => Just(Event::Release),
    ];
    proptest::collection::vec((0_u64..6_000, event), 0..40)
}

#[derive(Debug)]
struct Model {
    valid_until: Moment,
    hold_until: Option<Moment>,
    is_revoked: bool,
    over: Option<Status>,
}

impl Model {
    fn happens(&mut self, now: Moment, event: &Event) {
        if self.over.is_none() && now >= self.valid_until {
            self.over = Some(Status::Lost(Loss::Deadline));
        }
        if self.over.is_some() {
            return;
        }
        match event {
            Event::Look => {}
            Event::Renewed(ago, ttl) => {
                let end = before(now, *ago).after(ttl.usable());
                self.valid_until = self.valid_until.max(end);
            }
            Event::Refused(loss) => self.over = Some(Status::Lost(*loss)),
            Event::Revoke => {
                self.is_revoked |= self.hold_until.is_none_or(|end| now < end);
            }
            Event::Force => self.over = Some(Status::Lost(Loss::Forced)),
            Event::Release => self.over = Some(Status::Released),
        }
    }
}

fn before(now: Moment, millis: u64) -> Moment {
    Moment::from_nanos(now.as_nanos().saturating_sub(millis * 1_000_000))
}

fn befalls(lease: &mut LeaseState, event: &Event, now: Moment) {
    match event {
        Event::Look => {}
        Event::Renewed(ago, ttl) => lease.renewed(before(now, *ago), *ttl, now),
        Event::Refused(loss) => lease.refused(*loss, now),
        Event::Revoke => drop(lease.revoke(&Reason::new("why"), now)),
        Event::Force => lease.force(&Reason::new("why"), now),
        Event::Release => lease.release(now),
    }
}

proptest! {
    #[test]
    fn a_lease_is_held_exactly_while_answers_cover_it(
        events in events(),
        most in proptest::option::of(1_u64..60_000),
    ) {
        let hold_until = most.map(at);
        let mut lease = LeaseState::new(at(0), TTL, hold_until);
        let valid_until = at(0).after(TTL.usable());
        let mut model = Model { valid_until, hold_until, is_revoked: false, over: None };
        let mut now = 0;
        for (pause, event) in &events {
            now += pause;
            let moment = at(now);
            befalls(&mut lease, event, moment);
            model.happens(moment, event);
            let expected = match (model.over, model.hold_until) {
                (Some(over), _) => over,
                (None, _) if model.is_revoked => Status::Revoked,
                (None, Some(end)) if moment >= end => Status::MaxHoldReached,
                (None, end) => {
                    let end = end.map_or(model.valid_until, |end| end.min(model.valid_until));
                    Status::Held(end.since(moment))
                }
            };
            prop_assert_eq!(lease.status(moment), expected);
            prop_assert_eq!(lease.loss().is_some(), matches!(expected, Status::Lost(_)));
        }
    }

    #[test]
    fn an_end_is_final(events in events()) {
        let mut lease = lease();
        let (mut now, mut end) = (0, None);
        for (pause, event) in events {
            now += pause;
            let moment = at(now);
            befalls(&mut lease, &event, moment);
            let status = lease.status(moment);
            prop_assert_eq!(end.unwrap_or(status), status);
            if matches!(status, Status::Lost(_) | Status::Released) {
                end = Some(status);
            }
        }
    }
}
