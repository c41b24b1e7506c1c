//! Every history of a lease keeps the rule: it counts as held only while an answer says so.

use proptest::prelude::*;

use super::*;
use crate::types::error::LockErrorKind;

const TTL: Ttl = Ttl::DEFAULT;

fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

fn lease() -> LeaseState {
    LeaseState::new(Tenure::whole(at(0), TTL), None)
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
    let mut lease = LeaseState::new(Tenure::whole(at(0), TTL), Some(at(12_000)));
    lease.renewed(at(9_000), TTL, at(9_001));
    assert_eq!(lease.status(at(11_999)), Status::Held(Duration::from_millis(1)));
    assert_eq!(lease.status(at(12_000)), Status::MaxHoldReached);
    // It is not lost yet: its body is dropped, and then it is released.
    lease.release(at(12_001));
    assert_eq!(lease.status(at(99_999)), Status::Released);
}

/// What can happen to a lease. Renewals are answered when they arrive, or never.
#[derive(Clone, Debug)]
enum Event {
    Look,
    /// Sent this many milliseconds before its answer.
    Renewed(u64, Ttl),
    Refused(Loss),
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
        1 => Just(Event::Release),
    ];
    proptest::collection::vec((0_u64..6_000, event), 0..40)
}

/// The same history in the plainest code.
#[derive(Debug)]
struct Model {
    valid_until: Moment,
    hold_until: Option<Moment>,
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
            Event::Release => self.over = Some(Status::Released),
        }
    }
}

fn before(now: Moment, millis: u64) -> Moment {
    Moment::from_nanos(now.as_nanos().saturating_sub(millis * 1_000_000))
}

proptest! {
    #[test]
    fn a_lease_is_held_exactly_while_answers_cover_it(
        events in events(),
        most in proptest::option::of(1_u64..60_000),
    ) {
        let hold_until = most.map(at);
        let mut lease = LeaseState::new(Tenure::whole(at(0), TTL), hold_until);
        let mut model = Model { valid_until: at(0).after(TTL.usable()), hold_until, over: None };
        let mut now = 0;
        for (pause, event) in &events {
            now += pause;
            let moment = at(now);
            match event {
                Event::Look => {}
                Event::Renewed(ago, ttl) => lease.renewed(before(moment, *ago), *ttl, moment),
                Event::Refused(loss) => lease.refused(*loss, moment),
                Event::Release => lease.release(moment),
            }
            model.happens(moment, event);
            let expected = match (model.over, model.hold_until) {
                (Some(over), _) => over,
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
            match event {
                Event::Look => {}
                Event::Renewed(ago, ttl) => lease.renewed(before(moment, ago), ttl, moment),
                Event::Refused(loss) => lease.refused(loss, moment),
                Event::Release => lease.release(moment),
            }
            let status = lease.status(moment);
            prop_assert_eq!(end.unwrap_or(status), status);
            if !matches!(status, Status::Held(_)) {
                end = Some(status);
            }
        }
    }
}
