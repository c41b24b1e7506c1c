//! When two may believe in a lock at once, and which locks that is about.

use super::{LONGEST_LEASE, millis};
use crate::history::Fault;

/// From the start of such a fault to one longest lease and a second after it.
pub(super) struct Windows<'a> {
    faults: Vec<&'a Fault>,
    /// Without gaps where one follows the other.
    spans: Vec<(u64, u64)>,
}

impl<'a> Windows<'a> {
    /// Of faults in the order of their beginnings.
    pub(super) fn of(faults: &'a [Fault]) -> Self {
        let faults: Vec<_> = faults.iter().filter(|fault| fault.lost.is_some()).collect();
        let mut spans: Vec<(u64, u64)> = Vec::new();
        for fault in &faults {
            let end = end(fault);
            match spans.last_mut() {
                Some((_, last)) if *last >= fault.begin => *last = end.max(*last),
                _ => spans.push((fault.begin, end)),
            }
        }
        Self { faults, spans }
    }

    pub(super) fn cover(&self, begin: u64, end: u64) -> bool {
        self.spans.iter().any(|(first, last)| *first <= begin && end <= *last)
    }

    pub(super) fn has(&self, moment: u64) -> bool {
        self.cover(moment, moment)
    }

    /// Whether a lock with this token may be lost then, or end early. One that was granted after a fault is not
    /// harmed by it.
    pub(super) fn harm(&self, token: u64, begin: u64, finish: u64) -> bool {
        self.faults.iter().any(|fault| {
            let is_near = fault.begin <= finish && begin <= end(fault);
            is_near && fault.lost.is_some_and(|lost| token <= lost)
        })
    }

    pub(super) fn percent_outside(&self, (begin, end): (u64, u64)) -> u64 {
        let inside = self
            .spans
            .iter()
            .map(|(first, last)| (*last.min(&end)).saturating_sub(*first.max(&begin)));
        let length = end.saturating_sub(begin).max(1);
        100 - (inside.sum::<u64>().min(length) * 100 / length)
    }
}

fn end(fault: &Fault) -> u64 {
    fault.end + millis(LONGEST_LEASE + 1_000)
}
