//! Acquiring: one try, and a place in line where another holder has the lock.

use std::future::Future;
use std::pin::pin;

pub(crate) use self::acquirer::Acquirer;
use self::acquirer::Answer;
use self::in_line::InLine;
pub(crate) use self::permit::acquire_permit;
use crate::backend::{Link, Outcome};
use crate::hold::guard::LockGuard;
use crate::telemetry;
use crate::types::clock::{Moment, within};
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::options::Terms;
use crate::types::redact::DisplayKey;
use crate::waiters::{Entered, Heard};

mod acquirer;
mod in_line;
mod permit;

/// What a call found.
pub(crate) enum Tried {
    Granted(LockGuard),
    /// Another holder has the lock of this key.
    Busy(LockKey),
}

/// Tries once, unless other calls of the locker make that needless, then waits as the terms say.
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
    let (key, stake, has_tried) = match acquirer.waiters.enter(&key, terms.wait, start) {
        Entered::IsBusy => {
            acquirer.staged(&key)?;
            acquirer.link.count(&key, Outcome::Busy);
            return busy(acquirer, key, terms, start);
        }
        Entered::Joins { stake, is_first } => {
            if is_first {
                acquirer.staged(&key)?;
            }
            acquirer.link.count(&key, Outcome::Busy);
            (key, stake, false)
        }
        Entered::Asks(stake) => match acquirer.ask(key, None, terms, stake).await? {
            Answer::Granted(guard) => return Ok(Tried::Granted(guard)),
            Answer::Busy(key, mut stake) if terms.wait.can_wait() => {
                stake.waits();
                (key, stake, true)
            }
            Answer::Busy(key, stake) => {
                stake.ends(Heard::Busy);
                return busy(acquirer, key, terms, start);
            }
        },
    };
    let in_line = InLine::new(acquirer, &key, None, terms, start, stake, has_tried);
    let shown = in_line.shown_key();
    // Boxed, because a call that finds the lock free does not need the space.
    Box::pin(patiently(&acquirer.link, shown, start, in_line.wait())).await.map(Tried::Granted)
}

/// What a call returns that does not wait for a busy lock.
fn busy(
    acquirer: &Acquirer,
    key: LockKey,
    terms: &Terms,
    start: Moment,
) -> Result<Tried, LockError> {
    match terms.wait.limit() {
        None => Ok(Tried::Busy(key)),
        Some(limit) => Err(acquirer.wait_limit_reached(&key, terms, limit, start)),
    }
}

/// Waits; a call that waits for long logs that once, while it does.
async fn patiently<T>(
    link: &Link,
    key: DisplayKey<'_>,
    start: Moment,
    call: impl Future<Output = T>,
) -> T {
    // Made once: two of them, one for each way, would lie beside each other in this future.
    let mut call = pin!(call);
    let Some(patience) = link.reporting.waited_over else { return call.await };
    let elapsed = || link.backend.now().since(start);
    let timer = || link.backend.timer(patience.saturating_sub(elapsed()));
    if let Some(outcome) = within(timer, call.as_mut()).await {
        return outcome;
    }
    telemetry::waits_long(key, elapsed());
    call.await
}
