//! The metrics, sent to the recorder that the application installed.
//!
//! Labels that are literals cost no allocation: the usual outcomes are counted with literals.

use std::time::Duration;

use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

/// Describes the metrics to the recorder.
pub(crate) fn describe() {
    describe_counter!("lockable.acquire", "Calls that asked for a lock.");
    describe_histogram!("lockable.acquire.wait", Unit::Seconds, "How long calls waited.");
    describe_gauge!("lockable.waiters", "Calls that are waiting.");
    describe_counter!("lockable.handoff", "Grants that came from another holder.");
    describe_histogram!("lockable.hold", Unit::Seconds, "How long locks were held.");
    describe_counter!("lockable.hold.lost", "Locks that were lost.");
    describe_counter!(
        "lockable.hold.completed_after_loss",
        "Bodies that completed without a lock."
    );
    describe_counter!("lockable.renewal", "Renewals of leases.");
    describe_counter!("lockable.release", "Releases.");
    describe_counter!("lockable.release.abandoned", "Releases that were abandoned.");
    describe_gauge!("lockable.release.backlog", "Releases that wait in the background.");
    start_at_zero();
}

/// Rare events are counted from zero on: `rate()` does not show an increase from absent to one.
fn start_at_zero() {
    for reason in ["deadline", "absent", "taken"] {
        counter!("lockable.hold.lost", "reason" => reason).increment(0);
    }
    counter!("lockable.hold.completed_after_loss").increment(0);
    counter!("lockable.release.abandoned").increment(0);
    change("lockable.waiters", 0.0);
    change("lockable.release.backlog", 0.0);
}

pub(super) fn acquired(outcome: &'static str) {
    match outcome {
        "granted" => counter!("lockable.acquire", "outcome" => "granted").increment(1),
        _ => counter!("lockable.acquire", "outcome" => outcome).increment(1),
    }
}

/// One more of what has no label.
pub(super) fn count(name: &'static str) {
    counter!(name).increment(1);
}

pub(super) fn record(name: &'static str, duration: Duration) {
    histogram!(name).record(duration);
}

pub(crate) fn change(name: &'static str, by: f64) {
    gauge!(name).increment(by);
}

/// The lock came from another holder: of this process, or through the queue.
pub(crate) fn handed_off(is_local: bool) {
    if is_local {
        counter!("lockable.handoff", "by" => "local").increment(1);
    } else {
        counter!("lockable.handoff", "by" => "queue").increment(1);
    }
}

pub(super) fn lost(reason: &'static str) {
    counter!("lockable.hold.lost", "reason" => reason).increment(1);
}

pub(super) fn renewed(outcome: &'static str, leases: u64) {
    match outcome {
        "renewed" => counter!("lockable.renewal", "outcome" => "renewed").increment(leases),
        _ => counter!("lockable.renewal", "outcome" => outcome).increment(leases),
    }
}

pub(super) fn released(outcome: &'static str) {
    match outcome {
        "released" => counter!("lockable.release", "outcome" => "released").increment(1),
        _ => counter!("lockable.release", "outcome" => outcome).increment(1),
    }
}
