//! What calls for one lock and for a permit have in common: their outcome, and their patience.

use std::future::Future;
use std::pin::Pin;

use super::acquirer::{Acquirer, Busy};
use crate::backend::Link;
use crate::hold::guard::LockGuard;
use crate::telemetry;
use crate::types::clock::{Moment, within};
use crate::types::error::LockError;
use crate::types::options::Terms;
use crate::types::redact::DisplayKey;

/// What a call found.
pub(crate) enum Tried<G = LockGuard> {
    Granted(G),
    /// Another holder has the lock, or it is paused.
    Busy(Busy),
}

/// What a call returns that does not wait for a busy lock.
pub(super) fn busy(
    acquirer: &Acquirer,
    busy: impl Into<Busy>,
    terms: &Terms,
    start: Moment,
) -> Result<Tried, LockError> {
    let busy = busy.into();
    match terms.wait.limit() {
        None => Ok(Tried::Busy(busy)),
        Some(limit) => Err(acquirer.wait_limit_reached(&busy, terms, limit, start)),
    }
}

/// Waits; a call that waits for long logs that once, while it does.
pub(super) async fn patiently<T>(
    link: &Link,
    key: DisplayKey<'_>,
    start: Moment,
    // Not the future itself, which would lie in this one twice.
    mut call: Pin<&mut impl Future<Output = T>>,
) -> T {
    let Some(patience) = link.reporting.waited_over else { return call.await };
    let elapsed = || link.backend.now().since(start);
    let timer = || link.backend.timer(patience.saturating_sub(elapsed()));
    if let Some(outcome) = within(timer, call.as_mut()).await {
        return outcome;
    }
    telemetry::waits_long(key, elapsed());
    call.await
}
