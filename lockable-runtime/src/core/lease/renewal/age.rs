//! How long a renewed lease has been held: a warning after a day, and each time that this has doubled.

use std::time::Duration;

use crate::core::process::clock::Moment;

pub(super) struct Age {
    since: Moment,
    next: Duration,
}

impl Age {
    pub(super) fn new(since: Moment) -> Self {
        Self { since, next: DAY }
    }

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

/// A lock that is renewed for a day is held by a body that hangs, or by work without an end.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_doubling_of_the_age_warns_once() {
        let start = Moment::default().after(DAY);
        let mut age = Age::new(start);
        let hours = (0..=400).map(|hours| hours * DAY / 24);
        let warned: Vec<_> = hours.filter_map(|held| age.warning(start.after(held))).collect();
        assert_eq!(warned, [DAY, DAY * 2, DAY * 4, DAY * 8, DAY * 16]);
    }

    #[test]
    fn doublings_that_were_passed_together_warn_once() {
        let mut age = Age::new(Moment::default());
        let warned = [3, 3, 5].map(|days| age.warning(Moment::default().after(DAY * days)));
        assert_eq!(warned, [Some(DAY * 3), None, Some(DAY * 5)]);
    }
}
