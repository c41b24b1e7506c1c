//! The plan of one lease: when it is renewed next, and whether it is checked before.

use crate::core::lease::schedule;
use crate::core::process::clock::Moment;

pub(super) struct Plan {
    renewal: Moment,
    /// When it is checked before that. An answer to an earlier request does not change it: it may be older than the
    /// reason for the check.
    check: Option<Moment>,
    /// When it is looked at before that, which is a check that restores nothing.
    look: Option<Moment>,
    /// When the last look was due that the backend caused.
    looked: Moment,
    /// How many of those there were since the last renewal.
    looks: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Also for a check.
    Renewal,
    Look,
}

impl Plan {
    pub(super) fn new(renewal: Moment, look: Option<Moment>) -> Self {
        Self { renewal, check: None, look, looked: Moment::default(), looks: 0 }
    }

    pub(super) fn due(&self) -> Moment {
        self.due_by(self.renewal)
    }

    fn due_by(&self, latest: Moment) -> Moment {
        [self.look, self.check].into_iter().flatten().fold(latest, Moment::min)
    }

    pub(super) fn take(&mut self, now: Moment) -> Due {
        self.look = None;
        if self.check.is_none_or(|check| now < check) && now < self.renewal {
            return Due::Look;
        }
        self.check = None;
        Due::Renewal
    }

    pub(super) fn renewed(&mut self, next: Moment) -> Moment {
        (self.renewal, self.looks) = (next, 0);
        self.due()
    }

    pub(super) fn unanswered(&mut self, done: Due, again: Moment) -> Moment {
        if done == Due::Renewal && again < self.renewal {
            self.check_by(again);
        }
        self.due_by(again)
    }

    pub(super) fn check_by(&mut self, latest: Moment) {
        self.check = Some(self.check.map_or(latest, |check| check.min(latest)));
    }

    pub(super) fn look_by(&mut self, latest: Moment) {
        self.look = Some(self.due_by(latest));
    }

    /// Plans a look, because the lock may have been changed: soon, but not more and more often.
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
        plan.check_by(at(500));
        assert_eq!((plan.due(), plan.take(at(500))), (at(500), Due::Renewal));
        assert_eq!(plan.renewed(at(20_500)), at(20_500));
    }

    /// Two connections open right after each other. The check for the first one says nothing of the second one.
    #[test]
    fn a_check_that_is_asked_for_during_another_is_made() {
        let mut plan = Plan::new(at(20_000), None);
        plan.check_by(at(500));
        assert_eq!((plan.due(), plan.take(at(500))), (at(500), Due::Renewal));
        plan.check_by(at(600));
        assert_eq!(plan.renewed(at(20_500)), at(600));
        assert_eq!((plan.take(at(550)), plan.take(at(600))), (Due::Look, Due::Renewal));
        assert_eq!(plan.renewed(at(20_600)), at(20_600));
    }

    #[test]
    fn a_check_without_an_answer_is_made_again() {
        let mut plan = Plan::new(at(20_000), None);
        plan.check_by(at(500));
        let done = plan.take(at(500));
        assert_eq!(plan.unanswered(done, at(800)), at(800));
        assert_eq!(plan.take(at(800)), Due::Renewal);
        assert_eq!(plan.renewed(at(20_500)), at(20_500));
    }

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
        assert_eq!(plan.unanswered(Due::Renewal, at(6_000)), at(5_001));
        assert_eq!(plan.take(at(5_001)), Due::Renewal);
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
