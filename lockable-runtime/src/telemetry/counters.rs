//! The counters, told to the recorder that the application installed.

use metrics::counter;

pub(super) fn lost(reason: &'static str) {
    counter!("lock.lost", "reason" => reason).increment(1);
}

pub(super) fn completed_after_loss() {
    counter!("lock.completed_after_loss").increment(1);
}

pub(super) fn renewal_unanswered(leases: usize) {
    counter!("lock.renewal.unanswered").increment(u64::try_from(leases).unwrap_or(u64::MAX));
}

pub(super) fn release_abandoned() {
    counter!("lock.release.abandoned").increment(1);
}
