//! Taking over the lock that a ticket has.
//!
//! See "How does a ticket pass a lock to another process?" in DESIGN.md.

use super::acquirer::Acquirer;
use super::call::OneCall;
use crate::core::hold::guard::LockGuard;
use crate::core::telemetry::{self, Acquiring};
use crate::core::types::error::LockError;
use crate::core::types::options::Options;
use crate::core::types::ticket::Ticket;

/// Takes over the lock in one try, in the span of an acquisition.
///
/// # Errors
/// As they may be shown.
///
/// # Cancel safety
/// A request that was sent is waited for in the background, and what it takes over is released.
pub(crate) async fn redeem(
    acquirer: &Acquirer,
    ticket: &Ticket,
    options: &Options,
) -> Result<LockGuard, LockError> {
    let call = OneCall { acquirer, options, start: acquirer.context.backend.now() };
    let acquiring = Acquiring::start(call.shown(ticket.key()));
    let mut asking = Box::pin(acquirer.redeem(ticket, options));
    match telemetry::inside(&acquiring.span, asking.as_mut()).await {
        Ok(guard) => Ok(guard.begin(acquiring)),
        Err(error) => {
            let error = call.redacted(error);
            acquiring.failed(&error);
            Err(error)
        }
    }
}
