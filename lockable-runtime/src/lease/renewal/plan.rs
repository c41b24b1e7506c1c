//! What is planned for one lease: when it is renewed next, and whether it is looked at before.

use crate::lease::schedule;
use crate::types::clock::Moment;

/// Knows no clock: moments are given.
pub(super) struct Plan {
    renewal: Moment,
    /// When it is looked at before that.
    look: Option<Moment>,
    /// When the last look was due of which the backend was the reason.
    looked: Moment,
    /// How many of those there were since the last renewal.
    looks: u32,
}

/// What is done with a lease that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Renewal,
    Look,
}

impl Plan {
    pub(super) fn new(renewal: Moment, look: Option<Moment>) -> Self {
        Self { renewal, look, looked: Moment::default(), looks: 0 }
    }

    /// When it is due.
    pub(super) fn due(&self) -> Moment {
        self.due_by(self.renewal)
    }

    /// The same where it is due at this moment at the latest.
    pub(super) fn due_by(&self, latest: Moment) -> Moment {
        self.look.map_or(latest, |look| look.min(latest))
    }

    /// It is due now: what is done. That is as good as the look that was planned.
    pub(super) fn take(&mut self, now: Moment) -> Due {
        self.look = None;
        if now >= self.renewal { Due::Renewal } else { Due::Look }
    }

    /// It was renewed, and is again at that moment; returns when it is due.
    pub(super) fn renewed(&mut self, next: Moment) -> Moment {
        (self.renewal, self.looks) = (next, 0);
        self.due()
    }

    /// It is renewed at that moment at the latest.
    pub(super) fn renew_by(&mut self, latest: Moment) {
        self.renewal = self.renewal.min(latest);
    }

    /// It is looked at, or renewed, at that moment at the latest.
    pub(super) fn look_by(&mut self, latest: Moment) {
        self.look = Some(self.due_by(latest));
    }

    /// Its lock may have been changed: it is looked at soon, but not more and more often; returns when.
    pub(super) fn changed(&mut self, now: Moment) -> Moment {
        let due = schedule::look(self.looked, self.looks, now);
        if let Some(planned) = self.look.filter(|planned| *planned <= due) {
            return planned;
        }
        (self.look, self.looked, self.looks) = (Some(due), due, self.looks.saturating_add(1));
        due
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::default().after(Duration::from_millis(millis))
    }

    #[test]
    fn a_lease_is_looked_at_before_its_renewal() {
        let mut plan = Plan::new(at(20_000), Some(at(1_000)));
        assert_eq!(plan.due(), at(1_000));
        assert_eq!(plan.take(at(1_000)), Due::Look);
        assert_eq!(plan.due(), at(20_000));
        assert_eq!(plan.take(at(20_000)), Due::Renewal);
    }

    #[test]
    fn a_renewal_spares_the_look() {
        let mut plan = Plan::new(at(20_000), Some(at(1_000)));
        plan.renew_by(at(500));
        assert_eq!((plan.due(), plan.take(at(500))), (at(500), Due::Renewal));
        assert_eq!(plan.renewed(at(20_500)), at(20_500));
    }

    /// The answer that is under way may be older than the change.
    #[test]
    fn a_change_during_a_renewal_is_looked_at() {
        let mut plan = Plan::new(at(5_000), None);
        assert_eq!(plan.take(at(5_000)), Due::Renewal);
        assert_eq!(plan.changed(at(5_001)), at(5_001));
        assert_eq!(plan.renewed(at(10_000)), at(5_001));
        assert_eq!(plan.take(at(5_002)), Due::Look);
    }

    #[test]
    fn an_answer_that_fails_leaves_a_look_as_early_as_it_was() {
        let mut plan = Plan::new(at(5_000), None);
        assert_eq!(plan.take(at(5_000)), Due::Renewal);
        plan.changed(at(5_001));
        assert_eq!((plan.due_by(at(6_000)), plan.take(at(5_001))), (at(5_001), Due::Renewal));
    }

    #[test]
    fn endless_changes_cause_one_look_a_second() {
        let mut plan = Plan::new(at(60_000), None);
        let mut looks = Vec::new();
        for now in 0..10_000 {
            if plan.changed(at(now)) <= at(now) {
                assert_eq!(plan.take(at(now)), Due::Look);
                looks.push(now);
            }
        }
        let first = [0, 100, 300, 700, 1_500, 2_500, 3_500];
        assert_eq!(looks[..7], first);
        assert_eq!(looks.len(), 13);
        plan.renewed(at(60_000));
        assert_eq!(plan.changed(at(10_000)), at(10_000));
    }
}
