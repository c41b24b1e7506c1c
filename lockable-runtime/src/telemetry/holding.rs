//! From the grant of a lock to the start of its release, or to its loss.
//!
//! See "Why are the spans at debug level, and the body inside of one?" in DESIGN.md.

use std::time::Duration;

use tracing::field::Empty;
use tracing::{Span, debug, debug_span, error, trace, warn};

use super::counters;
use super::span::TARGET;
use crate::backend::Renewed;
use crate::types::clock::Moment;
use crate::types::redact::DisplayKey;
use crate::types::token::FencingToken;

/// A lock that is held.
pub(crate) struct Hold {
    span: Span,
    since: Moment,
    pub(super) waited: Duration,
    /// The share of the lease that may be used without a warning.
    held_over: Option<f64>,
}

impl Hold {
    /// Of a lock that was granted at `since`, after its holder had waited for `waited`.
    pub(crate) fn new(since: Moment, waited: Duration, held_over: Option<f64>) -> Self {
        Self { span: Span::none(), since, waited, held_over }
    }

    pub(super) fn begin(&mut self, key: DisplayKey<'_>, token: FencingToken) {
        self.span = debug_span!(target: TARGET, "hold", key = &*key.text(),
            fencing_token = u64::from(token), held = Empty, outcome = Empty);
    }

    /// Runs a step of the body inside the span.
    pub(crate) fn in_scope<R>(&self, step: impl FnOnce() -> R) -> R {
        self.span.in_scope(step)
    }

    /// The release starts, and `used` is the share of the lease that was used; `None` after a loss.
    pub(crate) fn end(
        self,
        key: DisplayKey<'_>,
        token: FencingToken,
        at: Moment,
        used: Option<f64>,
    ) {
        let held = at.since(self.since);
        let (seconds, fencing_token) = (held.as_secs_f64(), u64::from(token));
        let outcome = if used.is_some() { "released" } else { "lost" };
        self.span.record("held", seconds).record("outcome", outcome);
        debug!(name: "hold", target: TARGET, key = &*key.text(), fencing_token, held = seconds,
            outcome, "the lock was held");
        counters::record("lockable.hold", held);
        if let (Some(share), Some(most)) = (used, self.held_over)
            && share > most
        {
            warn!(name: "hold", target: TARGET, key = &*key.text(), held = seconds, share,
                "most of the lease was used; give it a longer `expire`, or `renew` it");
        }
    }
}

/// The span of one command that renews this count of leases.
pub(crate) fn renewing(leases: usize) -> Span {
    debug_span!(target: TARGET, "renew", leases)
}

/// The renewal of one lease was answered.
pub(crate) fn renewed(key: DisplayKey<'_>, token: FencingToken, renewed: Renewed) {
    let outcome = match renewed {
        Renewed::Held => "renewed",
        Renewed::Absent => "absent",
        Renewed::Taken => "taken",
    };
    trace!(name: "renew", target: TARGET, key = &*key.text(), fencing_token = u64::from(token),
        outcome, "a renewal was answered");
    counters::renewed(outcome, 1);
}

/// Renewals without an answer: the leases are neither renewed nor lost, and it is tried again.
pub(crate) fn renewal_unanswered(leases: usize, error: &str) {
    warn!(name: "renew", target: TARGET, leases, error,
        "a renewal was not answered and is tried again");
    counters::renewed("unanswered", u64::try_from(leases).unwrap_or(u64::MAX));
}

/// A holder can no longer be sure that it holds; logged once a lease, when that is found.
pub(crate) fn lost(key: DisplayKey<'_>, token: FencingToken, reason: &'static str, why: &str) {
    warn!(name: "lost", target: TARGET, key = &*key.text(), fencing_token = u64::from(token), reason,
        "the lock was lost: {why}");
    counters::lost(reason);
}

/// A body completed although its lock was lost: its effects may overlap with another holder's.
pub(crate) fn completed_after_loss(key: DisplayKey<'_>) {
    error!(name: "lost", target: TARGET, key = &*key.text(),
        "the body completed after the lock was lost");
    counters::count("lockable.hold.completed_after_loss");
}
