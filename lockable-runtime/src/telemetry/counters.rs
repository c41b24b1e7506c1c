//! The numbers, told to the recorder that the application installed.
//!
//! Labels that are literals cost no allocation: what goes well is counted with such ones.

use std::time::Duration;

use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

pub(super) fn describe() {
    describe_counter!("lock.acquire", "Calls that asked for a lock.");
    describe_histogram!("lock.acquire.wait", Unit::Seconds, "How long calls stood in line.");
    describe_gauge!("lock.waiters", "Calls that stand in line.");
    describe_counter!("lock.handoff", "Grants that came from another holder.");
    describe_histogram!("lock.hold", Unit::Seconds, "How long locks were held.");
    describe_counter!("lock.renewal", "Renewals of leases.");
    describe_counter!("lock.lost", "Locks that were lost.");
    describe_counter!("lock.completed_after_loss", "Bodies that completed without their lock.");
    describe_counter!("lock.release", "Releases.");
    describe_counter!("lock.release.abandoned", "Releases that were given up.");
    describe_gauge!("lock.release.backlog", "Releases that wait in the background.");
    begin();
}

/// Counts what is rare from zero on: of a number that appears with its first one, no rate shows that.
fn begin() {
    for reason in ["deadline", "absent", "taken"] {
        counter!("lock.lost", "reason" => reason).increment(0);
    }
    counter!("lock.completed_after_loss").increment(0);
    counter!("lock.release.abandoned").increment(0);
    gauge!("lock.waiters").increment(0.0);
    gauge!("lock.release.backlog").increment(0.0);
}

pub(super) fn acquired(outcome: &'static str) {
    match outcome {
        "granted" => counter!("lock.acquire", "outcome" => "granted").increment(1),
        _ => counter!("lock.acquire", "outcome" => outcome).increment(1),
    }
}

pub(super) fn waited(waited: Duration) {
    histogram!("lock.acquire.wait").record(waited);
}

pub(super) fn waiters(change: f64) {
    gauge!("lock.waiters").increment(change);
}

pub(super) fn handed_on(is_local: bool) {
    if is_local {
        counter!("lock.handoff", "by" => "local").increment(1);
    } else {
        counter!("lock.handoff", "by" => "queue").increment(1);
    }
}

pub(super) fn held(held: Duration) {
    histogram!("lock.hold").record(held);
}

pub(super) fn renewed(outcome: &'static str, leases: u64) {
    match outcome {
        "renewed" => counter!("lock.renewal", "outcome" => "renewed").increment(leases),
        _ => counter!("lock.renewal", "outcome" => outcome).increment(leases),
    }
}

pub(super) fn lost(reason: &'static str) {
    counter!("lock.lost", "reason" => reason).increment(1);
}

pub(super) fn completed_after_loss() {
    counter!("lock.completed_after_loss").increment(1);
}

pub(super) fn released(outcome: &'static str) {
    match outcome {
        "released" => counter!("lock.release", "outcome" => "released").increment(1),
        _ => counter!("lock.release", "outcome" => outcome).increment(1),
    }
}

pub(super) fn release_abandoned() {
    counter!("lock.release.abandoned").increment(1);
}

pub(super) fn backlog(change: f64) {
    gauge!("lock.release.backlog").increment(change);
}
