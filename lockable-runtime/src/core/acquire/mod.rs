//! Acquiring: one try, and a place in line where another holder has the lock; and several locks, of these.

use std::pin::pin;

pub(crate) use self::acquirer::Acquirer;
use self::acquirer::TryReply;
use self::busy::Busy;
use self::call::OneCall;
pub(crate) use self::call::Tried;
use self::in_line::InLine;
use self::patient::{Patient, WaitedFor};
use self::permit::acquire_permit;
pub(crate) use self::redeem::redeem;
pub(crate) use self::set::acquire_all;
use crate::core::backend::Outcome;
use crate::core::process::clock::Moment;
use crate::core::telemetry::{self, Acquiring};
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;
use crate::core::types::line_key::LineKey;
use crate::core::types::options::Options;
use crate::core::types::permit::Permits;
use crate::core::waiters::{Admission, LastReply};

mod acquirer;
mod busy;
mod call;
mod done;
mod gate;
mod in_line;
pub(crate) mod inspect;
mod patient;
mod permit;
mod redeem;
mod set;
mod warners;

/// Acquires as the options say, in a span of its own; a limit counts from `start`.
///
/// # Errors
/// As they may be shown.
///
/// # Cancel safety
/// As [`try_and_wait`].
pub(crate) async fn acquire(
    acquirer: &Acquirer,
    key: LockKey,
    options: &Options,
    start: Moment,
) -> Result<Tried, LockError> {
    let call = OneCall { acquirer, options, start };
    let acquiring = Acquiring::start(call.shown(&key));
    let tried = if options.permits == Permits::OneLock {
        let asking = pin!(try_and_wait(call, key));
        telemetry::inside(&acquiring.span, asking).await
    } else {
        let mut asking = Box::pin(acquire_permit(call, key));
        telemetry::inside(&acquiring.span, asking.as_mut()).await
    };
    match tried {
        Ok(Tried::Granted(guard)) => Ok(Tried::Granted(guard.begin(acquiring))),
        Ok(Tried::Busy(busy)) => {
            acquiring.busy(call.shown(&busy.key));
            Ok(Tried::Busy(busy))
        }
        Err(error) => {
            let error = if error.is_done() {
                Box::pin(done::with_times(&acquirer.context, error)).await
            } else {
                error
            };
            let error = call.redacted(error);
            acquiring.failed(&error);
            Err(error)
        }
    }
}

/// Tries once, unless other calls of the locker make that needless, then waits as the options say.
///
/// # Cancel safety
/// It leaves nothing behind: what a request on its way is granted is released in the background, and a waiter leaves
/// its queue.
async fn try_and_wait(call: OneCall<'_>, key: LockKey) -> Result<Tried, LockError> {
    let OneCall { acquirer, options, start } = call;
    acquirer.gate.check(&key)?;
    let (mut is_known, mut obstacle) = (false, None);
    let (key, entry, has_tried) = match acquirer.waiters.enter(&key, options.wait, start) {
        (Admission::IsBusy, _) => {
            acquirer.staged(&key)?;
            acquirer.context.count(&key, Outcome::Busy);
            let line = LineKey::Lock(key.clone());
            let found =
                Busy::new(key, acquirer.waiters.obstacle(&line), &acquirer.context.reporting);
            return call.busy(found);
        }
        (Admission::Joins { is_first }, entry) => {
            if is_first {
                acquirer.staged(&key)?;
            }
            acquirer.context.count(&key, Outcome::Busy);
            (key, entry, false)
        }
        (Admission::Tries, entry) => match acquirer.try_once(key, None, options, entry).await? {
            TryReply::Granted(guard) => return Ok(Tried::Granted(guard)),
            TryReply::Busy(found, mut entry) if options.wait.can_wait() => {
                is_known = found.log_obstacle(options);
                entry.waits();
                obstacle = found.obstacle;
                (found.key, entry, true)
            }
            TryReply::Busy(found, entry) => {
                entry.ends(LastReply::Busy);
                return call.busy(found);
            }
        },
    };
    let line = LineKey::Lock(key);
    let in_line = InLine::new(call, &line, entry, has_tried).behind(obstacle);
    // Boxed, because a call that finds the lock free does not need the space.
    let mut waiting = Box::pin(in_line.wait());
    let patient = Patient { call, key: line.key(), awaited: WaitedFor::Lock, is_known };
    patient.wait(waiting.as_mut()).await.map(Tried::Granted)
}
