//! How long a renewed lease has been held: a warning when that is long, and each time it has doubled.

use std::time::Duration;

use crate::types::clock::Moment;

/// Knows no clock: moments are given.
pub(super) struct Age {
    since: Moment,
    /// The age of which the next warning tells.
    next: Duration,
}

impl Age {
    /// Of a lease that is held from now on; the first warning comes at this age, which is above zero.
    pub(super) fn new(since: Moment, first: Duration) -> Self {
        Self { since, next: first }
    }

    /// How old it is, if a warning is due; the next one is due at twice the age of this one.
    pub(super) fn warning(&mut self, now: Moment) -> Option<Duration> {
        let age = now.since(self.since);
        if age < self.next {
            return None;
        }
        // Renewals may be so rare that several are due.
        while self.next <= age {
            self.next = self.next.saturating_mul(2);
        }
        Some(age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn each_doubling_of_the_age_warns_once() {
        let start = Moment::default().after(DAY);
        let mut age = Age::new(start, DAY);
        let hours = (0..=400).map(|hours| hours * DAY / 24);
        let warned: Vec<_> = hours.filter_map(|held| age.warning(start.after(held))).collect();
        assert_eq!(warned, [DAY, DAY * 2, DAY * 4, DAY * 8, DAY * 16]);
    }

    #[test]
    fn doublings_that_were_passed_together_warn_once() {
        let mut age = Age::new(Moment::default(), DAY);
        let warned = [3, 3, 5].map(|days| age.warning(Moment::default().after(DAY * days)));
        assert_eq!(warned, [Some(DAY * 3), None, Some(DAY * 5)]);
    }
}
