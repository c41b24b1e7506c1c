//! Acquiring: one try, and a place in line where another holder has the lock.

use std::pin::pin;

pub(crate) use self::acquirer::{Acquirer, Tried};
use self::in_line::InLine;
use crate::backend::Outcome;
use crate::hold::guard::LockGuard;
use crate::telemetry;
use crate::types::clock::within;
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::options::{Terms, Wait};

mod acquirer;
mod in_line;

/// Tries once, then waits as the terms say.
///
/// # Cancel safety
/// It leaves nothing behind: what a request on its way is granted is released in the background, and a
/// waiter leaves its queue.
pub(crate) async fn acquire(
    acquirer: &Acquirer,
    key: LockKey,
    terms: &Terms,
) -> Result<Tried, LockError> {
    let start = acquirer.link.backend.now();
    let joins = joins(acquirer, &key, terms);
    let key = if joins {
        key
    } else {
        match acquirer.try_acquire(key, terms).await? {
            Tried::Busy(key) => key,
            granted @ Tried::Granted(_) => return Ok(granted),
        }
    };
    if terms.wait == Wait::Never {
        return Ok(Tried::Busy(key));
    }
    let in_line = InLine::new(acquirer, &key, terms, start, !joins);
    // Boxed, because a call that finds the lock free does not need the space.
    Box::pin(wait(in_line)).await.map(Tried::Granted)
}

/// Whether a call joins those of this process that wait already, instead of trying by itself first.
/// The first try ends by its own deadlines, also where the limit is shorter.
fn joins(acquirer: &Acquirer, key: &LockKey, terms: &Terms) -> bool {
    let joins = terms.wait.can_wait() && acquirer.waiting(key) > 0;
    if joins {
        acquirer.link.count(key, Outcome::Busy);
    }
    joins
}

/// Waits in line; a call that waits for long logs that once, while it does.
async fn wait(in_line: InLine<'_>) -> Result<LockGuard, LockError> {
    let (link, key, start) = (&in_line.acquirer.link, in_line.key, in_line.start);
    // Made once: two of them, one for each way, would lie beside each other in this future.
    let mut call = pin!(in_line.wait());
    let Some(patience) = link.reporting.waited_over else { return call.await };
    let elapsed = || link.backend.now().since(start);
    let timer = || link.backend.timer(patience.saturating_sub(elapsed()));
    if let Some(outcome) = within(timer, call.as_mut()).await {
        return outcome;
    }
    telemetry::waits_long(link.reporting.show(key), elapsed());
    call.await
}
