//! Acquiring any permit of a key: in a lane of this process, as a call for one lock.
//!
//! See "How are `permits` made of plain locks?" in DESIGN.md.

use std::sync::Arc;

use super::acquirer::{Acquirer, Answer};
use super::call::{Tried, busy, patiently};
use super::in_line::InLine;
use crate::backend::Outcome;
use crate::types::clock::{Moment, within};
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::lanes::{Lanes, Occupied};
use crate::types::options::{Terms, Wait};
use crate::types::permit::{Family, Lane};
use crate::waiters::Heard;

/// Acquires one of the permits of the key, as [`acquire`](super::acquire) does for one lock.
///
/// # Errors
/// As of one lock.
///
/// # Cancel safety
/// As of one lock.
pub(super) async fn acquire_permit(
    acquirer: &Acquirer,
    key: LockKey,
    terms: &Terms,
    start: Moment,
) -> Result<Tried, LockError> {
    let permits = terms.permits.count()?;
    let family = Family::with_key(key);
    let shown = acquirer.link.reporting.show(family.key()).labeled(terms.label);
    let call = in_lane(acquirer, &family, permits, terms, start);
    if terms.wait == Wait::Never {
        return call.await;
    }
    patiently(&acquirer.link, shown, start, call).await
}

async fn in_lane(
    acquirer: &Acquirer,
    family: &Family,
    permits: u8,
    terms: &Terms,
    start: Moment,
) -> Result<Tried, LockError> {
    let key = family.key().clone();
    let lanes = acquirer.lanes.of(family, permits);
    let free = lanes.try_enter();
    // A call that waited for its lane waits for a permit, too, most likely: it asks for its place at once.
    let asks = free.is_some() || !terms.wait.can_wait();
    let place = match free {
        None => enter(acquirer, &lanes, terms, start).await,
        free => free,
    };
    let Some(place) = place else {
        acquirer.staged(&key)?;
        acquirer.link.count(&key, Outcome::Busy);
        return busy(acquirer, key, terms, start);
    };
    let lane =
        Arc::new(Lane { family: family.clone(), line: family.member(place.number), permits });
    let mut stake = acquirer.waiters.enter_lane(&lane);
    if asks {
        stake.asks();
        match acquirer.ask(key.clone(), Some(&lane), terms, stake).await? {
            Answer::Granted(guard) => return Ok(Tried::Granted(guard.in_lane(place))),
            Answer::Busy(key, stake) if !terms.wait.can_wait() => {
                stake.ends(Heard::Busy);
                return busy(acquirer, key, terms, start);
            }
            Answer::Busy(_, busy) => stake = busy,
        }
    }
    stake.waits();
    let in_line = InLine::new(acquirer, &key, Some(&lane), terms, start, stake, asks);
    let guard = Box::pin(in_line.wait()).await?;
    Ok(Tried::Granted(guard.in_lane(place)))
}

/// A lane that others of this process are in, unless they are for too long.
async fn enter(
    acquirer: &Acquirer,
    lanes: &Arc<Lanes>,
    terms: &Terms,
    start: Moment,
) -> Option<Occupied> {
    let limit = match terms.wait {
        Wait::Forever => return lanes.enter().await,
        Wait::AtMost(limit) => limit.saturating_sub(acquirer.link.backend.now().since(start)),
        // A call that is not to wait waits for the releases of its process, as one for a single lock does.
        Wait::Never if acquirer.has_releases() => acquirer.link.command_deadline,
        Wait::Never => return None,
    };
    within(|| acquirer.link.backend.timer(limit), lanes.enter()).await.flatten()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::locker::Locker;

    /// Goal: a call for all permits that has waited at the gate, and waits for the lanes of its process then.
    #[tokio::test(start_paused = true)]
    async fn the_limit_of_all_permits_is_one_for_the_gate_and_the_lanes() {
        let locker = Locker::in_memory();
        let _permits = [
            locker.lock("k").permits(2).acquire().await.unwrap(),
            locker.lock("k").permits(2).acquire().await.unwrap(),
        ];
        let all = |millis| {
            let request = locker.lock("k").all_permits(2);
            request.wait(Duration::from_millis(millis)).acquire()
        };
        let start = tokio::time::Instant::now();
        // The first is at the gate for all of its time.
        let (_, error) = tokio::join!(all(900), all(1_000));
        assert!(error.unwrap_err().is_wait_limit_reached());
        assert!(start.elapsed() < Duration::from_millis(1_500), "{:?}", start.elapsed());
    }
}
