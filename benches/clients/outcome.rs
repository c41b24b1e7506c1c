//! The figures of one run.

use std::collections::HashSet;

use crate::moments::Moments;
use crate::run::End;
use crate::timeline::Timeline;

/// Times are milliseconds, and begin with the event.
pub(crate) struct Outcome {
    /// When the last success was, of a client that stood still until it was ended.
    pub(crate) stood_still: Option<u64>,
    /// `None` when no success followed that others followed.
    pub(crate) recovery: Option<u64>,
    pub(crate) servers_well: u64,
    pub(crate) watched: u64,
    pub(crate) longest_here: Option<u64>,
    pub(crate) longest_elsewhere: Option<u64>,
    pub(crate) successes: usize,
    pub(crate) errors: usize,
    /// How many errors of each kind.
    pub(crate) reasons: String,
    /// Locks that are held although their callers got an error.
    pub(crate) left: usize,
}

impl Outcome {
    /// The keys are those that are held at the end.
    pub(crate) fn of(
        timeline: &Timeline,
        moments: &Moments,
        end: &End,
        held: &HashSet<String>,
    ) -> Self {
        let event = moments.event().expect("it has happened");
        let reasons = timeline.reasons(event);
        let words = reasons.iter().map(|(reason, count)| format!("{count} {reason}"));
        Self {
            stood_still: end.is_still.then(|| timeline.last().saturating_sub(event)),
            recovery: timeline.recovery(event, end.at),
            servers_well: moments.over().expect("the servers are well") - event,
            watched: end.at - event,
            longest_here: timeline.longest_here(event, end.at),
            longest_elsewhere: timeline.longest_elsewhere(event, end.at),
            successes: timeline.successes(event, end.at),
            errors: reasons.values().sum(),
            reasons: words.collect::<Vec<_>>().join(", "),
            left: timeline.failed_among(held),
        }
    }
}
