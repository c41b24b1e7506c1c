//! From the request for a lock to its outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tracing::field::Empty;
use tracing::{Span, debug, debug_span, error, info, warn};

use super::counters;
use super::holding::Hold;
use super::span::TARGET;
use crate::core::backend::Backend;
use crate::core::backend::Danger;
use crate::core::labels::grow_only::GrowOnly;
use crate::core::labels::label::Label;
use crate::core::process::clock::Moment;
use crate::core::types::error::{LockError, LockErrorKind};
use crate::core::types::redact::DisplayKey;
use crate::core::types::token::FencingToken;

/// A call that acquires; cancelled if it is dropped.
pub(crate) struct Acquiring {
    pub(crate) span: Span,
    label: &'static Label,
    is_over: bool,
}

impl Acquiring {
    pub(crate) fn start(key: DisplayKey<'_>) -> Self {
        let label = key.label;
        let span = debug_span!(target: TARGET, "acquire", key = &*key.text(), lock = label.lock(),
            function = label.function(), outcome = Empty, waited = Empty, fencing_token = Empty);
        Self { span, label, is_over: false }
    }

    pub(crate) fn granted(mut self, key: DisplayKey<'_>, token: FencingToken, hold: &mut Hold) {
        let waited = hold.waited.as_secs_f64();
        let fencing_token = u64::from(token);
        self.span.record("waited", waited).record("fencing_token", fencing_token);
        self.end("granted");
        debug!(name: "acquire", target: TARGET, key = &*key.text(), lock = self.label.lock(),
            function = self.label.function(), outcome = "granted", waited, fencing_token,
            "the lock was acquired");
        hold.begin(key, token);
    }

    pub(crate) fn busy(mut self, key: DisplayKey<'_>) {
        self.refuse(Some(key), "busy");
    }

    pub(crate) fn failed(mut self, error: &LockError) {
        let outcome = match error.kind() {
            LockErrorKind::WaitLimitReached => "wait_limit",
            LockErrorKind::Done => "done",
            _ => "failed",
        };
        self.refuse(error.shown_key(), outcome);
        acquisition_failed(self.label, error);
    }

    fn refuse(&mut self, key: Option<DisplayKey<'_>>, outcome: &'static str) {
        self.end(outcome);
        debug!(name: "acquire", target: TARGET, key = key.map(DisplayKey::text).as_deref(),
            lock = self.label.lock(), function = self.label.function(), outcome,
            "the lock was not acquired");
    }

    fn end(&mut self, outcome: &'static str) {
        self.is_over = true;
        self.span.record("outcome", outcome);
        counters::acquired(self.label, outcome);
    }
}

impl Drop for Acquiring {
    fn drop(&mut self) {
        if !self.is_over {
            self.end("cancelled");
        }
    }
}

pub(crate) fn acquisition_failed(label: &Label, error: &LockError) {
    if !error.is_busy() {
        counters::failed(label, error.kind().name());
    }
}

pub(crate) struct Waiting<'a> {
    backend: &'a Arc<dyn Backend>,
    since: Moment,
    label: &'static Label,
    pub(crate) span: Span,
}

impl<'a> Waiting<'a> {
    pub(crate) fn start(backend: &'a Arc<dyn Backend>, key: DisplayKey<'_>) -> Self {
        let label = key.label;
        counters::change(label, "lockable.waiters", 1.0);
        let span = debug_span!(target: TARGET, "wait", key = &*key.text(), lock = label.lock(),
            function = label.function(), waited = Empty);
        Self { backend, since: backend.now(), label, span }
    }

    pub(crate) fn until(&self, end: Moment) -> Duration {
        end.since(self.since)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let waited = self.until(self.backend.now());
        self.span.record("waited", waited.as_secs_f64());
        counters::change(self.label, "lockable.waiters", -1.0);
        counters::record(self.label, "lockable.acquire.wait", waited);
    }
}

pub(crate) fn waits_long(key: DisplayKey<'_>, waited: Duration, why: &str) {
    warn!(name: "wait", target: TARGET, key = &*key.text(), lock = key.label.lock(),
        function = key.label.function(), waited = waited.as_secs_f64(),
        "the call is still waiting; {why}");
}

pub(crate) fn waits_behind(key: DisplayKey<'_>, why: &str) {
    info!(name: "wait", target: TARGET, key = &*key.text(), lock = key.label.lock(),
        function = key.label.function(), "the call waits; {why}");
}

pub(crate) fn found_done(key: DisplayKey<'_>, why: &str) {
    warn!(name: "found_done", target: TARGET, key = &*key.text(), lock = key.label.lock(),
        function = key.label.function(),
        "a call without `once` finds the lock taken: {why}; give both calls `once`, or different keys");
}

pub(crate) fn wait_limit_reached(error: &LockError, waited: Duration) {
    let key = error.shown_key();
    let label = error.label();
    warn!(name: "acquire", target: TARGET, key = key.map(DisplayKey::text).as_deref(),
        lock = label.lock(), function = label.function(), waited = waited.as_secs_f64(),
        "the wait limit was reached: {}", error.problem());
}

/// At a wait limit, the call that waited has logged that.
pub(crate) fn skipped(error: &LockError) {
    if error.is_wait_limit_reached() {
        return;
    }
    let key = error.shown_key();
    let label = error.label();
    info!(name: "acquire", target: TARGET, key = key.map(DisplayKey::text).as_deref(),
        lock = label.lock(), function = label.function(), "{}; the call is skipped", error.problem());
}

/// See "Why is `tracing` not optional, and why is the body inside of a debug span?" in DESIGN.md.
pub(crate) fn error_discarded(error: &LockError) {
    let key = error.shown_key();
    let label = error.label();
    error!(name: "acquire", target: TARGET, key = key.map(DisplayKey::text).as_deref(),
        lock = label.lock(), function = label.function(), %error,
        "lock error discarded: the return type cannot carry it");
}

/// Once for a server.
pub(crate) fn unnotified(error: &LockError) {
    warn!(name: "wait", target: TARGET, error = error.as_value(),
        "waiting calls get no notifications and poll about once a second");
}

pub(crate) fn endangered(&Danger { server, code, message, advice }: &Danger<'_>) {
    warn!(name: "connect", target: TARGET, server, code, advice, "{message}");
}

/// Once for each certificate in the life of the process.
pub(crate) fn certificate_ends(which: &str) {
    static SAID: GrowOnly<(String, AtomicBool)> = GrowOnly::new();
    let make = || (which.to_owned(), AtomicBool::new(false));
    let (_, is_said) = SAID.find_or_add(|(said, _)| said == which, make);
    if !is_said.swap(true, Ordering::Relaxed) {
        warn!(name: "certificate", target: TARGET, "{which}; replace it before it ends");
    }
}

pub(crate) fn settings_ignored(names: &[String]) {
    if !names.is_empty() {
        let settings = &*names.join(", ");
        warn!(name: "connect", target: TARGET, settings,
            "settings in the URL are for other programs, and are ignored");
    }
}
