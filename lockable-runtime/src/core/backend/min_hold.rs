//! The minimum hold: a lock that stays taken after its release, until a moment set at its grant.
//!
//! See "How does `min_hold` keep a lock taken after its release?" in DESIGN.md.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::core::process::clock::Moment;

/// Written when the lock is granted for a minimum hold, read by each request for its release; zero without one, and
/// after an answered release.
#[derive(Default)]
pub(crate) struct MinHold(pub(super) AtomicU64);

impl MinHold {
    pub(crate) fn set_end(&self, end: Moment) {
        self.0.store(end.as_nanos(), Ordering::Release);
    }

    /// A release has left the lock taken. What a late request of the same attempt is granted is given back at once.
    pub(crate) fn end(&self) {
        self.0.store(0, Ordering::Release);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }

    /// How long a release now has to leave the lock taken, in whole milliseconds. The clock is read only if a minimum
    /// hold is set.
    pub(crate) fn rest(&self, now: impl FnOnce() -> Moment) -> Option<Duration> {
        const ALMOST_ONE: Duration = Duration::from_nanos(999_999);
        let end = Some(self.0.load(Ordering::Acquire)).filter(|end| *end != 0)?;
        let rest = Moment::from_nanos(end).since(now()).saturating_add(ALMOST_ONE);
        let millis = u64::try_from(rest.as_millis()).unwrap_or(u64::MAX);
        (millis > 0).then(|| Duration::from_millis(millis))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minimum_hold_counts_down_to_nothing() {
        let min_hold = MinHold::default();
        let rest_at = |nanos| min_hold.rest(|| Moment::from_nanos(nanos));
        assert_eq!(rest_at(1_000_000), None);
        min_hold.set_end(Moment::from_nanos(20_000_000));
        assert_eq!(rest_at(5_000_000), Some(Duration::from_millis(15)));
        assert_eq!(rest_at(19_999_999), Some(Duration::from_millis(1)));
        assert_eq!(rest_at(20_000_000), None);
    }

    #[test]
    fn the_clock_is_not_read_without_a_minimum_hold() {
        assert_eq!(MinHold::default().rest(|| unreachable!("reads the clock")), None);
    }
}
