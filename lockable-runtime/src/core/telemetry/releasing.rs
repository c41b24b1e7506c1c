use std::future::Future;
use std::pin::Pin;

use tracing::field::Empty;
use tracing::{debug, debug_span, warn};

use super::counters;
use super::span::{TARGET, inside};
use crate::core::backend::{Fault, Release};
use crate::core::types::redact::DisplayKey;

pub(crate) async fn releasing(
    key: DisplayKey<'_>,
    release: Pin<&mut impl Future<Output = Result<Release, Fault>>>,
) -> Result<Release, Fault> {
    let span = debug_span!(target: TARGET, "release", key = &*key.text(), lock = key.label.lock(),
        function = key.label.function(), outcome = Empty);
    let found = inside(&span, release).await;
    let outcome = match &found {
        Ok(Release::Released) => "released",
        Ok(Release::Absent) => "absent",
        Ok(Release::Taken) => "taken",
        Err(_) => "unanswered",
    };
    span.record("outcome", outcome);
    released(key, outcome);
    found
}

pub(crate) fn handed_off_locally(key: DisplayKey<'_>) {
    released(key, "handed_off");
}

fn released(key: DisplayKey<'_>, outcome: &'static str) {
    debug!(name: "release", target: TARGET, key = &*key.text(), lock = key.label.lock(),
        function = key.label.function(), outcome, "a release ended");
    counters::released(key.label, outcome);
}

pub(crate) fn released_too_late(key: DisplayKey<'_>, is_taken: bool) {
    let (outcome, message) = if is_taken {
        ("taken", "the lock was lost before its release: another holder has it, and keeps it")
    } else {
        (
            "absent",
            "the lock was lost before its release: it had expired, or was deleted or evicted",
        )
    };
    warn!(name: "release", target: TARGET, key = &*key.text(), lock = key.label.lock(),
        function = key.label.function(), outcome, "{message}");
}

pub(crate) fn release_deferred(key: DisplayKey<'_>) {
    debug!(name: "release", target: TARGET, key = &*key.text(), lock = key.label.lock(),
        function = key.label.function(),
        "the guard was dropped, and its release is sent in the background; `release().await`, or \
         `shutdown` at the end of `main`, waits for it");
}

pub(crate) fn release_abandoned(key: DisplayKey<'_>, fault: Fault) {
    let error = fault.shown(key).into_error();
    warn!(name: "release", target: TARGET, key = &*key.text(), lock = key.label.lock(),
        function = key.label.function(), error = error.as_value(),
        "the lock could not be released and ends with its lease");
    counters::count(key.label, "lockable.release.abandoned");
}
