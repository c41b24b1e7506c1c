//! The latest releases, which are repeated on the next primary.
//!
//! See "What becomes of the replies and releases of a demoted primary?" in DESIGN.md.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use crate::core::backend::Attempt;
use crate::core::process::clock::Moment;
use crate::core::process::mutex::Mutex;

/// How long before the last release, which itself may be old. In a planned failover a Sentinel notices the promotion
/// within a second, and the old primary was unused for a part of that time.
const WINDOW: Duration = Duration::from_secs(10);

/// The most that are remembered, if a service makes more in that time.
const MOST: usize = 8_192;

#[derive(Default)]
pub(crate) struct LatestReleases(Mutex<VecDeque<(Moment, Arc<Attempt>)>>);

impl LatestReleases {
    pub(crate) fn add(&self, attempt: Arc<Attempt>, now: Moment) {
        let mut latest = self.0.lock();
        while latest.len() >= MOST || latest.front().is_some_and(|(at, _)| now.since(*at) > WINDOW)
        {
            latest.pop_front();
        }
        // The attempt's own minimum hold ends with the answer, but a repetition has to leave the lock taken, too.
        let is_kept = attempt.min_hold.is_set();
        latest.push_back((now, if is_kept { attempt.with_ttl(attempt.ttl) } else { attempt }));
    }

    pub(crate) fn take(&self) -> impl Iterator<Item = Arc<Attempt>> + use<> {
        mem::take(&mut *self.0.lock()).into_iter().map(|(_, attempt)| attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::types::key::LockKey;
    use crate::core::types::options::Ttl;
    use crate::core::types::owner::Origin;
    use crate::core::types::owner::OwnerToken;

    fn attempt(number: u64) -> Arc<Attempt> {
        let owner = OwnerToken::at(Origin::draw().unwrap(), number, None);
        Arc::new(Attempt::owned(LockKey::prefixed("", "k").unwrap(), Ttl::DEFAULT, owner))
    }

    #[test]
    fn only_the_latest_releases_are_taken_once() {
        let (latest, start) = (LatestReleases::default(), Moment::default());
        for seconds in [0, 5, 10, 15] {
            latest.add(attempt(seconds), start.after(Duration::from_secs(seconds)));
        }
        assert_eq!(latest.take().count(), 3);
        assert_eq!(latest.take().count(), 0);
    }

    #[test]
    fn a_repeated_release_has_the_minimum_hold_of_the_first() {
        let (latest, attempt) = (LatestReleases::default(), attempt(0));
        attempt.min_hold.set_end(Moment::default().after(Duration::from_secs(3)));
        latest.add(Arc::clone(&attempt), Moment::default());
        attempt.min_hold.end();
        let rest = |again: Arc<Attempt>| again.min_hold.rest(Moment::default);
        assert_eq!(latest.take().map(rest).collect::<Vec<_>>(), [Some(Duration::from_secs(3))]);
    }

    #[test]
    fn a_busy_service_remembers_a_part() {
        let latest = LatestReleases::default();
        for number in 0..9_000 {
            latest.add(attempt(number), Moment::default());
        }
        assert_eq!(latest.take().count(), MOST);
    }
}
