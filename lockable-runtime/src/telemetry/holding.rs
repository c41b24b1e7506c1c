//! From the grant of a lock to its release.
//!
//! See "Why are the spans at debug level, and the body inside of one?" in DESIGN.md.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tracing::field::Empty;
use tracing::{Span, debug, debug_span, trace, warn};

use super::{TARGET, counters, inside};
use crate::backend::{Fault, Release, Renewed};
use crate::types::clock::Moment;
use crate::types::redact::Shown;
use crate::types::token::FencingToken;

/// A lock that is held.
pub(crate) struct Hold {
    span: Span,
    since: Moment,
    waited: Duration,
    /// The share of the lease that may be used without a warning.
    held_over: Option<f64>,
}

impl Hold {
    /// Of a lock that was granted at that moment, after its holder waited for so long.
    pub(crate) fn new(since: Moment, waited: Duration, held_over: Option<f64>) -> Self {
        Self { span: Span::none(), since, waited, held_over }
    }

    pub(super) fn waited(&self) -> Duration {
        self.waited
    }

    pub(super) fn begin(&mut self, key: Shown<'_>, token: FencingToken) {
        self.span = debug_span!(target: TARGET, "hold", key = &*key.text(),
            fencing_token = u64::from(token), held = Empty, outcome = Empty);
    }

    /// Runs a step of the body inside the span.
    pub(crate) fn in_scope<R>(&self, step: impl FnOnce() -> R) -> R {
        self.span.in_scope(step)
    }

    /// The release begins, after so much of the lease was used; or the lock was lost.
    pub(crate) fn end(self, key: Shown<'_>, token: FencingToken, at: Moment, used: Option<f64>) {
        let held = at.since(self.since);
        let (seconds, fencing_token) = (held.as_secs_f64(), u64::from(token));
        let outcome = if used.is_some() { "released" } else { "lost" };
        self.span.record("held", seconds).record("outcome", outcome);
        debug!(name: "hold", target: TARGET, key = &*key.text(), fencing_token, held = seconds,
            outcome, "the lock was held");
        counters::held(held);
        if let (Some(share), Some(most)) = (used, self.held_over)
            && share > most
        {
            warn!(name: "hold", target: TARGET, key = &*key.text(), held = seconds, share,
                "most of the lease was used; give it a longer `expire`, or `renew` it");
        }
    }
}

/// The span of a command that renews so many leases.
pub(crate) fn renewing(leases: usize) -> Span {
    debug_span!(target: TARGET, "renew", leases)
}

/// A renewal of one lease was answered.
pub(crate) fn renewed(key: Shown<'_>, token: FencingToken, renewed: Renewed) {
    let outcome = match renewed {
        Renewed::Held => "renewed",
        Renewed::Absent => "absent",
        Renewed::Taken => "taken",
    };
    trace!(name: "renew", target: TARGET, key = &*key.text(), fencing_token = u64::from(token),
        outcome, "a renewal was answered");
    counters::renewed(outcome, 1);
}

/// The outcome of a release that is on its way.
pub(crate) async fn releasing(
    key: Shown<'_>,
    release: Pin<&mut impl Future<Output = Result<Release, Fault>>>,
) -> Result<Release, Fault> {
    let span = debug_span!(target: TARGET, "release", key = &*key.text(), outcome = Empty);
    let found = inside(&span, release).await;
    let outcome = match &found {
        Ok(Release::Released) => "released",
        Ok(Release::Absent) => "absent",
        Ok(Release::Taken) => "taken",
        Err(_) => "unanswered",
    };
    span.record("outcome", outcome);
    debug!(name: "release", target: TARGET, key = &*key.text(), outcome, "a release ended");
    counters::released(outcome);
    found
}
