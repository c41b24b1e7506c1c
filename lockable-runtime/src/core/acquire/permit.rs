//! Acquiring any permit of a key: with a local permit of this process, as a call for one lock.
//!
//! See "How are `permits` made of plain locks?" in DESIGN.md.

use std::pin::pin;
use std::sync::Arc;

use super::acquirer::TryReply;
use super::call::{OneCall, Tried};
use super::in_line::InLine;
use super::patient::{Patient, WaitedFor};
use crate::core::backend::Outcome;
use crate::core::local_permits::{LocalPermits, Occupied};
use crate::core::process::clock::within;
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;
use crate::core::types::line_key::LineKey;
use crate::core::types::options::Wait;
use crate::core::types::permit::{LocalNumber, LocalPermit, PermitsKey};
use crate::core::waiters::LastReply;

/// Acquires one of the permits of the key, as [`acquire`](super::acquire) does for one lock.
///
/// A call for all permits names each that it wants. It has lines of its own for them, and waits for no local permit:
/// one such call at a time is between the gate and its last permit.
///
/// # Errors
/// As of one lock.
///
/// # Cancel safety
/// As of one lock.
pub(super) async fn acquire_permit(call: OneCall<'_>, key: LockKey) -> Result<Tried, LockError> {
    let OneCall { acquirer, options, .. } = call;
    let of_all = PermitsKey::of_permit(&key);
    let is_of_all = of_all.is_some();
    let permits_key = of_all.unwrap_or_else(|| PermitsKey::with_key(key));
    let key = permits_key.key().clone();
    acquirer.gate.check(&key)?;
    let permits = options.permits.count()?;
    let acquiring = async {
        let permits_key = permits_key.clone();
        if is_of_all {
            let number = LocalNumber::next_of_all();
            // Its places in the queue are to be next to each other, so it asks for them at once.
            let asks = !options.wait.can_wait();
            return in_line(call, LocalPermit { permits_key, number, permits }, asks).await;
        }
        in_local_permit(call, permits_key, permits).await
    };
    let mut acquiring = pin!(acquiring);
    if options.wait == Wait::Never {
        return acquiring.await;
    }
    let awaited = if is_of_all { WaitedFor::AllPermits } else { WaitedFor::OnePermit };
    let patient = Patient { call, key: &key, awaited, is_known: false };
    patient.wait(acquiring.as_mut()).await
}

async fn in_local_permit(
    call: OneCall<'_>,
    permits_key: PermitsKey,
    permits: u8,
) -> Result<Tried, LockError> {
    let OneCall { acquirer, options, .. } = call;
    let local_permits = acquirer.local_permits.of(&permits_key, permits);
    let free = local_permits.try_enter();
    // A call that waited for its local permit waits for a permit, too, most likely: it asks for its place at once.
    let asks = free.is_some() || !options.wait.can_wait();
    let place = match free {
        None => {
            let entering = pin!(async { Ok(enter(call, permits_key.key(), &local_permits).await) });
            acquirer.gate.while_open(permits_key.key(), entering).await?
        }
        free => free,
    };
    let Some(place) = place else {
        let key = permits_key.into_key();
        acquirer.staged(&key)?;
        acquirer.context.count(&key, Outcome::Busy);
        return call.busy(key);
    };
    let number = LocalNumber::OneOf(place.number);
    match in_line(call, LocalPermit { permits_key, number, permits }, asks).await? {
        Tried::Granted(guard) => Ok(Tried::Granted(guard.in_local_permit(place))),
        busy @ Tried::Busy(_) => Ok(busy),
    }
}

/// Tries, unless the call is to wait at once, and waits in its line as the options say.
async fn in_line(
    call: OneCall<'_>,
    local_permit: LocalPermit,
    asks: bool,
) -> Result<Tried, LockError> {
    let OneCall { acquirer, options, .. } = call;
    let line_key = LineKey::LocalPermit(Arc::new(local_permit));
    let mut entry = acquirer.waiters.enter_alone(&line_key);
    if asks {
        entry.tries();
        match acquirer
            .try_once(line_key.key().clone(), line_key.local_permit(), options, entry)
            .await?
        {
            TryReply::Granted(guard) => return Ok(Tried::Granted(guard)),
            TryReply::Busy(found, entry) if !options.wait.can_wait() => {
                entry.ends(LastReply::Busy);
                return call.busy(found);
            }
            TryReply::Busy(found, busy) => {
                found.log_obstacle(options);
                entry = busy;
            }
        }
    }
    entry.waits();
    let in_line = InLine::new(call, &line_key, entry, asks);
    Box::pin(in_line.wait()).await.map(Tried::Granted)
}

async fn enter(
    call: OneCall<'_>,
    key: &LockKey,
    local_permits: &Arc<LocalPermits>,
) -> Option<Occupied> {
    let timer = |duration| call.acquirer.context.backend.timer(duration);
    match call.options.wait {
        Wait::Forever => local_permits.enter(timer).await,
        Wait::AtMost(limit) => {
            let rest = limit.saturating_sub(call.waited());
            within(|| timer(rest), local_permits.enter(timer)).await.flatten()
        }
        Wait::Never => {
            // As a call for a single lock does.
            call.acquirer.settled(key).await;
            local_permits.try_enter()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem;
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    use super::*;
    use crate::core::backend::BackendContext;
    use crate::core::hold::guard::LockGuard;
    use crate::core::locker::Locker;
    use crate::core::memory::Slow;
    use crate::core::types::options::Ttl;
    use crate::core::types::reporting::Reporting;

    /// Otherwise no operator could stop its holder, and no change of its lock would be reported. Method: the first
    /// local permit of a process, whose number is that of the first permit, gets the second one.
    #[tokio::test(start_paused = true)]
    async fn a_permit_is_known_by_its_own_name() {
        let on = || Locker::builder().url("memory://waited-permit").connect_lazy().unwrap();
        let (locker, other) = (on(), on());
        let permit = |locker: &Locker| locker.lock("k").permits(2).acquire();
        let (_first, second) = (permit(&other).await.unwrap(), permit(&other).await.unwrap());
        let release = async {
            locker.context().backend.timer(Duration::from_millis(1)).await;
            second.release().await.unwrap();
        };
        let (third, ()) = tokio::join!(permit(&locker), release);
        let is_known = |guard: &LockGuard| locker.acquirer().leases(guard.lease().key()).len() == 1;
        let third = third.unwrap();
        assert!(is_known(&third));
        third.release().await.unwrap();
        let tried = permit(&locker).await.unwrap();
        assert!(is_known(&tried));
    }

    /// Goal: a guard, or a body that blocks, takes a permit from its process for longer than from others.
    #[tokio::test(start_paused = true)]
    async fn a_local_permit_is_free_when_the_lease_of_its_call_is_over() {
        let locker = Locker::in_memory();
        let expire = Duration::from_millis(300);
        let permit = || locker.lock("k").permits(2);
        let short = async || permit().expire(expire).acquire().await.unwrap();
        mem::forget(short().await);
        let _kept = short().await;
        // A line asks within a second.
        let waiting = permit().wait(4 * expire).acquire().await.unwrap();
        let tried = permit().try_acquire().await;
        assert!(tried.is_ok() && waiting.lease().is_held());
        assert!(permit().try_acquire().await.unwrap_err().is_busy(), "these two hold both");
    }

    /// Goal: a local permit is found free by the next look only.
    #[tokio::test(start_paused = true)]
    async fn a_call_that_waits_for_a_local_permit_has_it_with_the_release() {
        let locker = Locker::in_memory();
        let permit = || locker.lock("k").permits(2);
        let (first, _second) = (permit().acquire().await.unwrap(), permit().acquire().await);
        let start = locker.context().backend.now();
        let (waiting, released) = tokio::join!(permit().acquire(), first.release());
        assert!(waiting.is_ok() && released.is_ok());
        assert_eq!(locker.context().backend.now(), start);
    }

    /// Goal: a process finds its own permits busy right after it has dropped them.
    #[tokio::test(start_paused = true)]
    async fn a_try_waits_for_the_releases_of_all_permits() {
        let (slow, locker) = slow();
        slow.release_takes.store(100, Relaxed);
        let all = || locker.lock("k").all_permits(2);
        drop(all().acquire().await.unwrap());
        drop(locker.lock("k").permits(2).try_acquire().await.unwrap());
        drop(all().try_acquire().await.unwrap());
        assert!(all().try_acquire().await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_try_for_a_permit_waits_for_no_release_of_another_key() {
        let (slow, locker) = slow();
        slow.release_takes.store(100, Relaxed);
        let permit = || locker.lock("k").permits(2);
        let _both = [permit().acquire().await.unwrap(), permit().acquire().await.unwrap()];
        drop(locker.lock("other").acquire().await.unwrap());
        let start = locker.context().backend.now();
        assert!(permit().try_acquire().await.unwrap_err().is_busy());
        assert_eq!(locker.context().backend.now(), start);
    }

    fn slow() -> (Arc<Slow>, Locker) {
        let slow = Slow::open();
        let backend = Arc::new(Arc::clone(&slow));
        let context = BackendContext::new(backend, Duration::from_secs(1), Reporting::default());
        (slow, Locker::builder().on(context, Ttl::DEFAULT).unwrap())
    }

    /// Goal: a local permit is free twice, because its call ends after its lease.
    #[tokio::test(start_paused = true)]
    async fn a_guard_that_is_dropped_after_its_lease_frees_no_other_local_permit() {
        let locker = Locker::in_memory();
        let permit = || locker.lock("k").permits(2);
        let late = permit().expire(Duration::from_millis(300)).acquire().await.unwrap();
        let _first = permit().acquire().await.unwrap();
        let _second = permit().acquire().await.unwrap();
        let (permits_key, acquirer) =
            (PermitsKey::of_permit(late.lease().key()).unwrap(), locker.acquirer());
        drop(late);
        acquirer.settled(permits_key.key()).await;
        assert!(acquirer.local_permits.of(&permits_key, 2).try_enter().is_none());
    }

    /// Otherwise the calls for that lock, and those for permits, would have each other's turns. Method: each text that
    /// could name a line of the calls that wait for permits.
    #[tokio::test(start_paused = true)]
    async fn no_lock_has_the_name_of_a_line_of_permits() {
        let locker = Locker::in_memory();
        let held = [
            locker.lock("k").permits(2).acquire().await.unwrap(),
            locker.lock("k").permits(2).acquire().await.unwrap(),
        ];
        let all = locker.lock("k").all_permits(2).acquire();
        let look = async {
            locker.context().backend.timer(Duration::from_millis(1)).await;
            let lines = (0..1_000).map(|line| format!("disLock:{{k}}#1:all:{line}"));
            let permits = (0..3).map(|number| format!("disLock:{{k}}#{number}"));
            let names = lines.chain(permits).chain(["disLock:k".into(), "disLock:{k}".into()]);
            let keys = names.map(|name| LockKey::new(name).unwrap());
            let waiting = keys.filter(|key| locker.acquirer().waiting(key) > 0).count();
            drop(held);
            waiting
        };
        let (all, waiting) = tokio::join!(all, look);
        assert!(all.is_ok() && waiting == 0, "{waiting} locks");
    }

    /// Method: a call for all permits that has waited at the gate, and waits for the local permits of its process then.
    #[tokio::test(start_paused = true)]
    async fn the_limit_of_all_permits_is_one_for_the_gate_and_the_local_permits() {
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
        assert_eq!(start.elapsed(), Duration::from_secs(1));
    }
}
