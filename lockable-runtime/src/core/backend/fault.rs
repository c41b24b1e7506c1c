//! Why a backend gave no usable answer.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use crate::core::types::error::{Cause, LockError, LockErrorKind};
use crate::core::types::key::LockKey;
use crate::core::types::redact::DisplayKey;
use crate::core::types::remedy::Advice;
use crate::core::types::reporting::Reporting;

/// An answer that is on its way. It borrows nothing, so it can outlive its call.
pub(crate) type Reply<T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send>>;

#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: LockErrorKind,
    pub(crate) message: String,
    pub(crate) advice: Box<Advice>,
    pub(crate) source: Option<Cause>,
    /// Whether the attempt is certain to hold nothing, so that there is nothing to release.
    pub(crate) proves_absence: bool,
}

impl Fault {
    pub(crate) fn new(kind: LockErrorKind, message: impl Into<String>) -> Self {
        let (message, advice) = (message.into(), Box::default());
        Self { kind, message, advice, source: None, proves_absence: false }
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(LockErrorKind::Unavailable, message)
    }

    pub(crate) fn advise(mut self, advice: impl Into<Advice>) -> Self {
        *self.advice = advice.into();
        self
    }

    /// The error about this lock, as it may be shown.
    pub(crate) fn about(self, key: &LockKey, reporting: &Reporting) -> LockError {
        let error = self.shown(reporting.show(key)).into_error();
        reporting.redact(error.with_key(key.as_str()))
    }

    pub(crate) fn shown(mut self, key: DisplayKey<'_>) -> Self {
        self.message = key.redact_in(&self.message).into_owned();
        if let Some(source) = self.source.as_ref().and_then(|source| key.redact_cause(source)) {
            self.source = Some(source.into());
        }
        self
    }

    pub(crate) fn too_late() -> Self {
        Self::unavailable(LockError::TOO_LATE).advise(LockError::LONGER)
    }

    pub(crate) fn no_answer(backend: &str, limit: Duration) -> Self {
        Self::unavailable(format!("{backend}: no answer within {limit:?}"))
    }

    /// What a caller gets. No `From`: the compiler would offer it to users whose own errors are not converted.
    pub(crate) fn into_error(self) -> LockError {
        LockError::new(self.kind, self.message).advise(*self.advice).with_source(self.source)
    }
}

impl From<Fault> for io::Error {
    /// What a connection does not get is an error of its stream.
    fn from(fault: Fault) -> Self {
        Self::other(fault.into_error())
    }
}

impl From<LockError> for Fault {
    fn from(error: LockError) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}
