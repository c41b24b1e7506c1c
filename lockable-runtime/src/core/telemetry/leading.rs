//! The campaigns of a process for the lead.

use std::thread;

use tracing::{error, info, warn};

use super::span::TARGET;
use crate::core::labels::label::Label;
use crate::core::types::error::LockError;
use crate::core::types::redact::DisplayKey;

/// If this is dropped, the campaigns end without an outcome.
pub(crate) struct Campaigns {
    key: String,
    label: &'static Label,
    is_over: bool,
}

impl Campaigns {
    pub(crate) fn start(key: DisplayKey<'_>) -> Self {
        Self { key: key.text().into_owned(), label: key.label, is_over: false }
    }

    /// The first failure in a row.
    pub(crate) fn failed(&self, error: &LockError) {
        warn!(name: "lead", target: TARGET, key = self.key, lock = self.label.lock(),
            function = self.label.function(), %error,
            "the campaign failed, and is repeated each second until one succeeds");
    }

    pub(crate) fn end<T>(mut self, outcome: &Result<T, LockError>) {
        self.is_over = true;
        match outcome {
            Ok(_) => self.resigned("returned"),
            Err(error) => self.broken("failed", Some(error)),
        }
    }

    fn resigned(&self, outcome: &'static str) {
        info!(name: "lead", target: TARGET, key = self.key, lock = self.label.lock(),
            function = self.label.function(), outcome,
            "resigned: this process campaigns no more");
    }

    fn broken(&self, outcome: &'static str, error: Option<&LockError>) {
        error!(name: "lead", target: TARGET, key = self.key, lock = self.label.lock(),
            function = self.label.function(), outcome, error = error.map(display),
            "the campaigns have ended, and are not repeated: start `lead` again once the cause is mended");
    }
}

impl Drop for Campaigns {
    fn drop(&mut self) {
        match (self.is_over, thread::panicking()) {
            (true, _) => {}
            (false, true) => self.broken("panicked", None),
            (false, false) => self.resigned("dropped"),
        }
    }
}
