//! From the question for a lock to its answer.

use std::sync::Arc;
use std::time::Duration;

use tracing::field::Empty;
use tracing::{Span, debug, debug_span};

use super::{Hold, TARGET, counters};
use crate::backend::Backend;
use crate::types::clock::Moment;
use crate::types::error::LockError;
use crate::types::redact::Shown;
use crate::types::token::FencingToken;

/// A call that asks for a lock; one that is dropped before its answer was given up.
pub(crate) struct Acquiring {
    span: Span,
    is_over: bool,
}

impl Acquiring {
    pub(crate) fn start(key: Shown<'_>) -> Self {
        let span = debug_span!(target: TARGET, "acquire", key = &*key.text(), outcome = Empty,
            waited = Empty, fencing_token = Empty);
        Self { span, is_over: false }
    }

    pub(crate) fn span(&self) -> &Span {
        &self.span
    }

    /// The lock is this call's, and held from now on.
    pub(crate) fn granted(mut self, key: Shown<'_>, token: FencingToken, hold: &mut Hold) {
        let (waited, fencing_token) = (hold.waited().as_secs_f64(), u64::from(token));
        self.span.record("waited", waited).record("fencing_token", fencing_token);
        self.end("granted");
        debug!(name: "acquire", target: TARGET, key = &*key.text(), outcome = "granted", waited,
            fencing_token, "the lock was acquired");
        hold.begin(key, token);
    }

    /// Another holder has the lock.
    pub(crate) fn busy(mut self, key: Shown<'_>) {
        self.refuse(Some(key), "busy");
    }

    /// Another holder had the lock for too long, or nobody can tell.
    pub(crate) fn failed(mut self, error: &LockError) {
        let outcome = if error.is_wait_limit_reached() { "wait_limit" } else { "failed" };
        self.refuse(error.shown_key(), outcome);
    }

    fn refuse(&mut self, key: Option<Shown<'_>>, outcome: &'static str) {
        self.end(outcome);
        debug!(name: "acquire", target: TARGET, key = key.map(Shown::text).as_deref(), outcome,
            "the lock was not acquired");
    }

    fn end(&mut self, outcome: &'static str) {
        self.is_over = true;
        self.span.record("outcome", outcome);
        counters::acquired(outcome);
    }
}

impl Drop for Acquiring {
    fn drop(&mut self) {
        if !self.is_over {
            self.end("cancelled");
        }
    }
}

/// A call that stands in line, for as long as this lives.
pub(crate) struct Waiting<'a> {
    backend: &'a Arc<dyn Backend>,
    since: Moment,
    span: Span,
}

impl<'a> Waiting<'a> {
    pub(crate) fn start(backend: &'a Arc<dyn Backend>, key: Shown<'_>) -> Self {
        counters::waiters(1.0);
        let span = debug_span!(target: TARGET, "wait", key = &*key.text(), waited = Empty);
        Self { backend, since: backend.now(), span }
    }

    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    pub(crate) fn until(&self, end: Moment) -> Duration {
        end.since(self.since)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let waited = self.until(self.backend.now());
        self.span.record("waited", waited.as_secs_f64());
        counters::waiters(-1.0);
        counters::waited(waited);
    }
}
