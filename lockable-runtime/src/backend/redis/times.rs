//! From when on a grant counts that no request of ours asked for at that moment.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Moment;

/// The newest answer of the server that told its time.
///
/// The arrival of a message is no safe beginning: it may have been under way for longer than the
/// grant lasts. But the server read its clock for an answer after the request was sent, and as much
/// time went by from there to the grant as the server's clock tells.
#[derive(Default)]
pub(super) struct Times(Mutex<Option<(Moment, u64)>>);

impl Times {
    /// The server answered a request that was sent then with its time in microseconds.
    pub(super) fn learn(&self, sent: Moment, server: u64) {
        let mut newest = self.newest();
        if newest.is_none_or(|(_, known)| known < server) {
            *newest = Some((sent, server));
        }
    }

    /// The server may be another one now.
    pub(super) fn forget(&self) {
        *self.newest() = None;
    }

    /// From when on a grant counts that was made at that time of the server's, and told by now.
    pub(super) fn since(&self, granted: u64, arrived: Moment) -> Option<Moment> {
        let (sent, server) = (*self.newest())?;
        let later = Duration::from_micros(granted.checked_sub(server)?);
        // A server's clock that is faster than ours by one in a hundred would count too much.
        let since = sent.after(later.saturating_sub(later / 100));
        Some(since.min(arrived))
    }

    fn newest(&self) -> MutexGuard<'_, Option<(Moment, u64)>> {
        // Assigned at once, so a panic elsewhere leaves it sound.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Moment {
        Moment::from_nanos(micros * 1_000)
    }

    #[test]
    fn a_grant_counts_from_the_newest_answer_on() {
        let times = Times::default();
        assert_eq!(times.since(5_000, at(900)), None);
        times.learn(at(100), 4_000);
        assert_eq!(times.since(4_100, at(900)), Some(at(199)));
        assert_eq!(times.since(9_000, at(900)), Some(at(900)));
        assert_eq!(times.since(3_999, at(900)), None);
        times.learn(at(50), 3_000);
        assert_eq!(times.since(4_000, at(900)), Some(at(100)));
        times.forget();
        assert_eq!(times.since(4_000, at(900)), None);
    }
}
