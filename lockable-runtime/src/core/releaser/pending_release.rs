//! The decisions about one deferred release, without requests or timers.

use std::sync::Arc;
use std::time::Duration;

use crate::core::backend::{Attempt, Fault, Release};
use crate::core::process::clock::Moment;

/// The pause between the first two tries; each next one is twice as long, up to a second.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What is known of an attempt whose release was deferred. Ordered by uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Known {
    /// It was granted and its release was never sent: finding it gone is worth a warning.
    Granted,
    /// Its release was sent and not answered, or it was lost: finding it gone is what was wanted.
    Releasing,
    /// Its request may still land: nothing found now proves nothing.
    Unknown,
}

pub(crate) struct PendingRelease {
    pub(crate) attempt: Arc<Attempt>,
    pub(crate) known: Known,
    pause: Duration,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Done,
    WasGone,
    /// No answer came while the backend could know the attempt.
    Abandoned,
    Again(Moment),
}

impl PendingRelease {
    pub(crate) fn new(attempt: Arc<Attempt>, known: Known) -> Self {
        Self { attempt, known, pause: FIRST_PAUSE }
    }

    pub(crate) fn merge(&mut self, known: Known) {
        self.known = self.known.max(known);
    }

    /// A try was answered now; after `end` the backend cannot know the attempt any more.
    pub(crate) fn answered(
        &mut self,
        outcome: &Result<Release, Fault>,
        now: Moment,
        end: Moment,
    ) -> Next {
        let is_last = now >= end;
        match (outcome, self.known) {
            (Ok(Release::Released), _) | (Ok(_), Known::Releasing) => Next::Done,
            (Ok(_), Known::Granted) => Next::WasGone,
            (Ok(_), Known::Unknown) if is_last => Next::Done,
            (Err(_), _) if is_last => Next::Abandoned,
            (Ok(_), Known::Unknown) => Next::Again(self.next_try(now, end)),
            (Err(_), known) => {
                // From now on a release may have run, unseen.
                self.known = known.max(Known::Releasing);
                Next::Again(self.next_try(now, end))
            }
        }
    }

    fn next_try(&mut self, now: Moment, end: Moment) -> Moment {
        let next = now.after(self.pause).min(end);
        self.pause = LONGEST_PAUSE.min(2 * self.pause);
        next
    }
}

#[cfg(test)]
mod tests;
