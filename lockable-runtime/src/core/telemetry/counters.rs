//! The metrics. The key of each is stored with its lock's label, so that counting costs no allocation.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use metrics::{
    Key, Level, Metadata, Unit, describe_counter, describe_gauge, describe_histogram, with_recorder,
};

use crate::core::labels::label::Label;

pub(crate) fn describe() {
    describe_counter!("lockable.acquire", "Calls that tried to acquire a lock.");
    describe_counter!("lockable.acquire.failed", "Calls that failed with an error.");
    describe_histogram!("lockable.acquire.wait", Unit::Seconds, "How long calls waited.");
    describe_gauge!("lockable.waiters", "Calls that are waiting.");
    describe_counter!("lockable.handoff", "Grants that came from another holder.");
    describe_histogram!("lockable.hold", Unit::Seconds, "How long locks were held.");
    describe_counter!("lockable.hold.lost", "Locks that were lost.");
    describe_counter!("lockable.hold.revoked", "Holders that an operator asked to stop.");
    describe_counter!(
        "lockable.hold.completed_after_loss",
        "Bodies that completed without a lock."
    );
    describe_counter!("lockable.renewal", "Renewals of leases.");
    describe_counter!("lockable.release", "Releases.");
    describe_counter!("lockable.release.abandoned", "Releases that were abandoned.");
    describe_gauge!("lockable.release.backlog", "Releases that wait in the background.");
    DESCRIBED.fetch_add(1, Ordering::Relaxed);
    start_at_zero(Default::default());
}

/// Each time perhaps to another recorder.
static DESCRIBED: AtomicU32 = AtomicU32::new(0);

/// Of an uncontended lock.
const USUAL: [(&str, Option<(&str, &str)>); 3] = [
    ("lockable.acquire", Some(("outcome", "granted"))),
    ("lockable.hold", None),
    ("lockable.release", Some(("outcome", "released"))),
];

const METADATA: Metadata<'static> =
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// Rare events start at zero: `rate()` does not show an increase from absent to one.
fn start_at_zero(label: &Label) {
    // Those of every pair come first, so that they are found first.
    for (name, other) in USUAL {
        let _: &Key = key(label, name, other);
    }
    for kind in ["unavailable", "refused", "wrong-type", "invalid-key"] {
        add(label, "lockable.acquire.failed", Some(("kind", kind)), 0);
    }
    for reason in ["deadline", "absent", "taken", "forced"] {
        add(label, "lockable.hold.lost", Some(("reason", reason)), 0);
    }
    add(label, "lockable.hold.revoked", None, 0);
    add(label, "lockable.hold.completed_after_loss", None, 0);
    add(label, "lockable.release.abandoned", None, 0);
    change(label, "lockable.waiters", 0.0);
    change(label, "lockable.release.backlog", 0.0);
}

pub(super) fn acquired(label: &Label, outcome: &'static str) {
    start(label);
    add(label, "lockable.acquire", Some(("outcome", outcome)), 1);
}

pub(super) fn failed(label: &Label, kind: &'static str) {
    start(label);
    add(label, "lockable.acquire.failed", Some(("kind", kind)), 1);
}

fn start(label: &Label) {
    if label.metrics.is_first_since(DESCRIBED.load(Ordering::Relaxed)) {
        start_at_zero(label);
    }
}

pub(super) fn count(label: &Label, name: &'static str) {
    add(label, name, None, 1);
}

pub(super) fn record(label: &Label, name: &'static str, duration: Duration) {
    let key = key(label, name, None);
    with_recorder(|recorder| recorder.register_histogram(key, &METADATA)).record(duration);
}

pub(crate) fn change(label: &Label, name: &'static str, by: f64) {
    let key = key(label, name, None);
    with_recorder(|recorder| recorder.register_gauge(key, &METADATA)).increment(by);
}

pub(crate) fn handed_off(label: &Label, is_local: bool) {
    let by = if is_local { "local" } else { "queue" };
    add(label, "lockable.handoff", Some(("by", by)), 1);
}

pub(super) fn lost(label: &Label, reason: &'static str) {
    add(label, "lockable.hold.lost", Some(("reason", reason)), 1);
}

pub(super) fn renewed(label: &Label, outcome: &'static str) {
    add(label, "lockable.renewal", Some(("outcome", outcome)), 1);
}

pub(super) fn released(label: &Label, outcome: &'static str) {
    add(label, "lockable.release", Some(("outcome", outcome)), 1);
}

fn add(label: &Label, name: &'static str, other: Option<(&'static str, &'static str)>, by: u64) {
    let key = key(label, name, other);
    with_recorder(|recorder| recorder.register_counter(key, &METADATA)).increment(by);
}

fn key<'a>(
    label: &'a Label,
    name: &'static str,
    other: Option<(&'static str, &'static str)>,
) -> &'a Key {
    label.metrics.get(name, label.lock().unwrap_or_default(), other)
}
