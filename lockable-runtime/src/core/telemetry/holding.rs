//! From the grant of a lock to its release or loss.
//!
//! See "Why is `tracing` not optional, and why is the body inside of a debug span?" in DESIGN.md.

use std::time::Duration;

use tracing::field::Empty;
use tracing::{Span, debug, debug_span, error, trace, warn};

use super::counters;
use super::span::TARGET;
use crate::core::backend::Renewed;
use crate::core::labels::label::Label;
use crate::core::process::clock::Moment;
use crate::core::types::error::LockError;
use crate::core::types::redact::DisplayKey;
use crate::core::types::token::FencingToken;

pub(crate) struct Hold {
    span: Span,
    since: Moment,
    pub(super) waited: Duration,
    renews: bool,
}

/// A body that uses more than this share of its lease is stopped midway on a slower day.
const MOST_OF_A_LEASE: f64 = 0.8;

#[derive(Clone, Copy)]
pub(crate) enum HoldEnd {
    Released {
        /// The share of the lease.
        used: f64,
    },
    Revoked,
    Lost,
}

impl Hold {
    pub(crate) fn new(since: Moment, waited: Duration, renews: bool) -> Self {
        Self { span: Span::none(), since, waited, renews }
    }

    pub(super) fn begin(&mut self, key: DisplayKey<'_>, token: FencingToken) {
        self.span = debug_span!(target: TARGET, "hold", key = &*key.text(),
            lock = key.label.lock(), function = key.label.function(),
            fencing_token = u64::from(token), held = Empty, outcome = Empty);
    }

    pub(crate) fn in_scope<R>(&self, step: impl FnOnce() -> R) -> R {
        self.span.in_scope(step)
    }

    pub(crate) fn end(self, key: DisplayKey<'_>, token: FencingToken, at: Moment, end: HoldEnd) {
        let held = at.since(self.since);
        let seconds = held.as_secs_f64();
        let fencing_token = u64::from(token);
        let outcome = match end {
            HoldEnd::Released { .. } => "released",
            HoldEnd::Revoked => "revoked",
            HoldEnd::Lost => "lost",
        };
        self.span.record("held", seconds).record("outcome", outcome);
        debug!(name: "hold", target: TARGET, key = &*key.text(), lock = key.label.lock(),
            function = key.label.function(), fencing_token, held = seconds, outcome,
            "the lock was held");
        counters::record(key.label, "lockable.hold", held);
        if let HoldEnd::Released { used: share } = end
            && !self.renews
            && share > MOST_OF_A_LEASE
        {
            warn!(name: "hold", target: TARGET, key = &*key.text(), lock = key.label.lock(),
                function = key.label.function(), held = seconds, share,
                "most of the lease was used; give it a longer `expire`, or `renew` it");
        }
    }
}

pub(crate) fn held_long(key: DisplayKey<'_>, token: FencingToken, held: Duration) {
    warn!(name: "hold", target: TARGET, key = &*key.text(), lock = key.label.lock(),
        function = key.label.function(), fencing_token = u64::from(token),
        held = held.as_secs_f64(),
        "the lock is held and renewed for a long time; if its body hangs, `max_hold` stops it");
}

pub(crate) fn renewing(leases: usize) -> Span {
    debug_span!(target: TARGET, "renew", leases)
}

pub(crate) fn renewed(key: DisplayKey<'_>, token: FencingToken, renewed: Renewed) {
    let outcome = match renewed {
        Renewed::Held => "renewed",
        Renewed::Absent => "absent",
        Renewed::Taken => "taken",
    };
    trace!(name: "renew", target: TARGET, key = &*key.text(), lock = key.label.lock(),
        function = key.label.function(), fencing_token = u64::from(token), outcome,
         "a renewal ended");
    counters::renewed(key.label, outcome);
}

pub(crate) fn renewal_unanswered(
    leases: impl ExactSizeIterator<Item = &'static Label>,
    error: &LockError,
) {
    warn!(name: "renew", target: TARGET, leases = leases.len(), error = error.as_value(),
        "a renewal had no reply and is retried");
    for label in leases {
        counters::renewed(label, "unanswered");
    }
}

/// Logged once a lease, when the loss is found.
pub(crate) fn lost(key: DisplayKey<'_>, token: FencingToken, reason: &'static str, why: &str) {
    warn!(name: "lost", target: TARGET, key = &*key.text(), lock = key.label.lock(),
        function = key.label.function(), fencing_token = u64::from(token), reason,
        "the lock was lost: {why}");
    counters::lost(key.label, reason);
}

/// Logged once a lease.
pub(crate) fn revoked(key: DisplayKey<'_>, token: FencingToken, reason: &str) {
    warn!(name: "revoked", target: TARGET, key = &*key.text(), lock = key.label.lock(),
        function = key.label.function(), fencing_token = u64::from(token), reason,
        "an operator asked the holder to stop");
    counters::count(key.label, "lockable.hold.revoked");
}

/// Its effects may overlap with another holder's.
pub(crate) fn completed_after_loss(key: DisplayKey<'_>) {
    error!(name: "lost", target: TARGET, key = &*key.text(), lock = key.label.lock(),
        function = key.label.function(),
        "the body completed after the lock was lost");
    counters::count(key.label, "lockable.hold.completed_after_loss");
}
