//! Several locks for one call: all of them or none.
//!
//! They are taken in the order of their keys, so that no calls wait for each other: a call that waits has smaller keys
//! only.
//!
//! See "How does a call acquire several keys without a deadlock?" in DESIGN.md.

use std::future::{Future, poll_fn};
use std::iter;
use std::pin::pin;
use std::task::Poll;

use super::{Acquirer, Busy, OneCall, Tried, acquire};
use crate::core::hold::grant::first_lost;
use crate::core::hold::guard::LockGuard;
use crate::core::hold::set::{LockSet, end_all};
use crate::core::lease::Lease;
use crate::core::process::mutex::Mutex;
use crate::core::process::together::join_all;
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;
use crate::core::types::options::{Begin, Options, Wait};
use crate::core::types::permit::{MOST, Permits, PermitsKey};
use crate::core::types::slot::Slot;

/// How often a call begins that loses a lock while it waits for another.
const ROUNDS: u32 = 5;

/// Acquires the locks of all these keys; the limits of the hold count from when the last is there.
///
/// # Cancel safety
/// It leaves nothing behind: what it has by then is released in the background.
pub(crate) async fn acquire_all(
    acquirer: &Acquirer,
    keys: Vec<LockKey>,
    options: &Options,
) -> Result<Tried<LockSet>, LockError> {
    let mut in_order = keys.clone();
    if options.permits == Permits::OneLock {
        in_order.sort_unstable();
        in_order.dedup();
    }
    let start = acquirer.context.backend.now();
    let part = Options { begin: Begin::WithTheLast, ..options.clone() };
    let all = All { call: OneCall { acquirer, options: &part, start }, keys: &in_order };
    let guards = match all.rounds().await? {
        Tried::Granted(guards) => guards,
        Tried::Busy(busy) => return Ok(Tried::Busy(busy)),
    };
    for guard in &guards {
        guard.begin_limits(options);
    }
    Ok(Tried::Granted(LockSet::new(guards, &keys)))
}

struct All<'a> {
    /// With the options of one of the locks.
    call: OneCall<'a>,
    /// In order, each once.
    keys: &'a [LockKey],
}

impl All<'_> {
    /// Begins again if a lock was lost while the call waited for others.
    async fn rounds(&self) -> Result<Tried<Vec<LockGuard>>, LockError> {
        let mut round = 1;
        loop {
            match self.round().await {
                Err(error) if error.is_lost() && round < ROUNDS => round += 1,
                Err(error) if error.is_lost() => return Err(LockError::lost_each_time(error)),
                outcome => return outcome,
            }
        }
    }

    /// All of the locks, or none: those that were taken are released before any other outcome.
    async fn round(&self) -> Result<Tried<Vec<LockGuard>>, LockError> {
        let mut held = Vec::with_capacity(self.keys.len());
        let busy = if self.call.options.permits != Permits::OneLock {
            self.fill_with_permits(&mut held).await
        } else if self.call.options.wait.can_wait() {
            self.fill(&mut held).await.map(|()| None)
        } else {
            self.fill_in_order(&mut held).await
        };
        let all = match busy {
            Ok(None) => self.refresh(&held).await.map(|()| None),
            busy => busy,
        };
        match all {
            Ok(None) => Ok(Tried::Granted(held)),
            Ok(Some(busy)) => {
                end_all(held).await;
                Ok(Tried::Busy(busy))
            }
            Err(error) => {
                end_all(held).await;
                Err(error)
            }
        }
    }

    /// Returns the first that is busy, which is larger than all that the call holds: of calls that overlap, the one
    /// that holds the largest key can always get all of its locks.
    async fn fill_in_order(&self, held: &mut Vec<LockGuard>) -> Result<Option<Busy>, LockError> {
        for key in self.keys {
            match self.one(key, self.call.options).await? {
                Tried::Granted(guard) => held.push(guard),
                Tried::Busy(busy) => return Ok(Some(busy)),
            }
        }
        Ok(None)
    }

    /// Tries the rest at the same time, and waits for the first that is busy; then the rest again.
    async fn fill(&self, held: &mut Vec<LockGuard>) -> Result<(), LockError> {
        while let Some(busy) = self.try_rest(held).await? {
            let guard = self.wait_for(&busy.key, held).await?;
            held.push(guard);
        }
        Ok(())
    }

    async fn refresh(&self, held: &[LockGuard]) -> Result<(), LockError> {
        let renewals = join_all(held.iter().map(|guard| guard.lease.refresh())).await;
        renewals.into_iter().collect::<Result<(), _>>()?;
        // While the last renewal was under way, renewals of another lease in the background may have failed.
        held.iter().try_for_each(|guard| guard.lease.still_held())
    }

    /// Takes what is free of the rest, up to the first that is busy, which it returns. What is behind that is released
    /// again: another call could wait for it with a smaller key that this call waits for.
    async fn try_rest(&self, held: &mut Vec<LockGuard>) -> Result<Option<Busy>, LockError> {
        let rest = self.keys.get(held.len()..).unwrap_or_default();
        if let [last] = rest {
            return Ok(Some(last.clone().into()));
        }
        let once = Options { wait: Wait::Never, ..self.call.options.clone() };
        let tries = rest.iter().map(|key| self.one(key, &once));
        let (mut busy, mut failed, mut behind) = (None, None, Vec::new());
        for tried in join_all(tries).await {
            match tried {
                Ok(Tried::Granted(guard)) if busy.is_none() => held.push(guard),
                Ok(Tried::Granted(guard)) => behind.push(guard),
                Ok(Tried::Busy(other)) => busy = busy.or(Some(other)),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let Some(error) = failed else { return Ok(busy) };
        held.append(&mut behind);
        Err(error)
    }

    /// Takes the gate of all permits, and then each of those, as it becomes free; returns what is busy.
    ///
    /// With all of them the call gives the gate away, in the background: the next call for all joins the queues while
    /// this one works.
    async fn fill_with_permits(
        &self,
        held: &mut Vec<LockGuard>,
    ) -> Result<Option<Busy>, LockError> {
        let Some((gate, permits)) = self.keys.split_first() else { return Ok(None) };
        let Some(permits_key) = PermitsKey::of_gate(gate) else { return Ok(None) };
        let at_gate = Options { permits: Permits::OneLock, ..self.call.options.clone() };
        let about = |error: LockError| error.with_key(permits_key.key().as_str());
        let Tried::Granted(gate) = self.one(gate, &at_gate).await.map_err(about)? else {
            return Ok(Some(permits_key.into_key().into()));
        };
        let busy = self.fill_behind_gate(permits, &gate, held).await;
        if matches!(busy, Ok(None)) {
            drop(gate);
            return self.is_alone(&permits_key, permits.len()).await.map(|()| None);
        }
        held.push(gate);
        busy
    }

    async fn fill_behind_gate(
        &self,
        permits: &[LockKey],
        gate: &LockGuard,
        held: &mut Vec<LockGuard>,
    ) -> Result<Option<Busy>, LockError> {
        let count = u32::try_from(permits.len()).unwrap_or(u32::MAX);
        let options = Options { permits: Permits::OneOf(count), ..self.call.options.clone() };
        let leases = Mutex::new(vec![gate.lease.clone()]);
        let one = async |permit| {
            let tried = self.one(permit, &options).await;
            if let Ok(Tried::Granted(guard)) = &tried {
                leases.lock().push(guard.lease.clone());
            }
            tried
        };
        let all = join_all(permits.iter().map(one));
        let (mut busy, mut failed) = (None, None);
        for tried in while_held(&leases, all).await? {
            match tried {
                Ok(Tried::Granted(guard)) => held.push(guard),
                Ok(Tried::Busy(other)) => busy = busy.or(Some(other)),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(busy), Err)
    }

    /// Fails if a call that counts more permits of the key has one of those.
    async fn is_alone(&self, permits_key: &PermitsKey, count: usize) -> Result<(), LockError> {
        let above: Vec<_> = permits_key.members(MOST).skip(count).collect();
        let (context, key) = (&self.call.acquirer.context, permits_key.key());
        let taken = context.request(Slot::of(key), context.backend.is_any_taken(above)).await;
        let is_taken = taken.map_err(|fault| fault.about(key, &context.reporting))?;
        if is_taken { Err(permits_key.has_more_than(count)) } else { Ok(()) }
    }

    /// Waits in the queue of one lock, as long as those that are held are.
    async fn wait_for(&self, key: &LockKey, held: &[LockGuard]) -> Result<LockGuard, LockError> {
        let leases = Mutex::new(held.iter().map(|guard| guard.lease.clone()).collect());
        let tried = while_held(&leases, self.one(key, self.call.options)).await??;
        tried.granted().map_err(|busy| busy.error())
    }

    async fn one(&self, key: &LockKey, options: &Options) -> Result<Tried, LockError> {
        acquire(self.call.acquirer, key.clone(), options, self.call.start).await
    }
}

/// Waits for this, as long as these leases last, and those that come meanwhile.
async fn while_held<T>(
    held: &Mutex<Vec<Lease>>,
    waiting: impl Future<Output = T>,
) -> Result<T, LockError> {
    let (mut watched, mut lost) = (0, first_lost(iter::empty()));
    let mut waiting = pin!(waiting);
    let outcome = poll_fn(|cx| {
        loop {
            if watched < held.lock().len() {
                let held = held.lock();
                (watched, lost) = (held.len(), first_lost(held.iter()));
            }
            if let Poll::Ready(error) = lost.as_mut().poll(cx) {
                return Poll::Ready(Err(error));
            }
            let outcome = waiting.as_mut().poll(cx);
            if outcome.is_ready() || held.lock().len() == watched {
                return outcome.map(Ok);
            }
        }
    });
    outcome.await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    use crate::core::backend::BackendContext;
    use crate::core::lease::schedule::due;
    use crate::core::locker::Locker;
    use crate::core::memory::Slow;
    use crate::core::process::clock::tokio_time;
    use crate::core::types::options::Ttl;
    use crate::core::types::reporting::Reporting;
    use crate::core::types::slot::Slot;

    /// Method: the last lock comes after a third of the first lease, right before that is renewed.
    #[tokio::test(start_paused = true)]
    async fn a_set_begins_with_no_old_lease() {
        let locker = Locker::in_memory();
        let timer = |duration| locker.context().backend.timer(duration);
        let third = Ttl::DEFAULT.duration() / 3;
        let until_due = || due(tokio_time(), Ttl::DEFAULT).since(tokio_time());
        // Renewals are due on a grid, on which a third may lie.
        while until_due() < third + Duration::from_millis(20) {
            timer(Duration::from_millis(5)).await;
        }
        let last = locker.lock("b").acquire().await.unwrap();
        let release = async {
            timer(until_due().saturating_sub(Duration::from_millis(5))).await;
            last.release().await.unwrap();
        };
        let (set, ()) = tokio::join!(locker.lock_all(["a", "b"]).acquire(), release);
        // The other one was granted just now.
        let remaining = set.unwrap().leases()[0].remaining();
        assert!(remaining > 2 * third, "{remaining:?}");
    }

    /// Method: when the last lock is there, the first is renewed, by a request that takes longer than the lease of the
    /// last, which no renewal reaches.
    #[tokio::test(start_paused = true)]
    async fn a_set_begins_with_no_lease_that_has_ended_meanwhile() {
        let slow = Slow::open();
        let backend = Arc::new(Arc::clone(&slow));
        let context = BackendContext::new(backend, Duration::from_secs(60), Reporting::default());
        let locker = Locker::builder().on(context, Ttl::DEFAULT).unwrap();
        let timer = |duration| locker.context().backend.timer(duration);
        let last = locker.lock("b").acquire().await.unwrap();
        slow.silent.set(Slot::of(last.lease().key())).unwrap();
        slow.renewal_takes.store(11_000, Relaxed);
        let release = async {
            timer(Duration::from_secs(4)).await;
            last.release().await.unwrap();
            timer(Duration::from_millis(100)).await;
            // The first lock has a request under way; from here on it is renewed in the background.
            slow.renewal_takes.store(0, Relaxed);
        };
        let (set, ()) = tokio::join!(locker.lock_all(["a", "b"]).acquire(), release);
        assert!(set.unwrap().leases().is_held());
    }

    /// Method: the first lock is free before the limit, and the second never.
    #[tokio::test(start_paused = true)]
    async fn the_limit_of_a_wait_is_one_for_all_keys() {
        let locker = Locker::in_memory();
        let second = Duration::from_secs(1);
        let guards = [locker.lock("a").acquire().await, locker.lock("b").renew().acquire().await];
        let [first, _last] = guards.map(Result::unwrap);
        let release = async {
            locker.context().backend.timer(2 * second).await;
            first.release().await.unwrap();
        };
        let request = locker.lock_all(["a", "b"]).wait(3 * second);
        let call = tokio::time::timeout(4 * second, request.acquire());
        let (ended, ()) = tokio::join!(call, release);
        assert!(ended.expect("it has a limit for each").unwrap_err().is_wait_limit_reached());
    }

    /// Goal: a call never ends, because it loses a lock each time it waits for another. Method: no renewal is answered,
    /// and the other lock is held for longer than all rounds take.
    #[tokio::test(start_paused = true)]
    async fn a_call_that_loses_a_lock_each_time_gives_up() {
        let slow = Slow::open();
        let backend = Arc::new(Arc::clone(&slow));
        let context = BackendContext::new(backend, Duration::from_secs(1), Reporting::default());
        let locker = Locker::builder().on(context, Ttl::DEFAULT).unwrap();
        let hour = Duration::from_secs(3_600);
        let _last = locker.lock("b").expire(hour).acquire().await.unwrap();
        slow.renewal_takes.store(3_600_000, Relaxed);
        let call = tokio::time::timeout(hour / 2, locker.lock_all(["a", "b"]).acquire());
        let error = call.await.expect("the call ends").unwrap_err();
        assert!(error.to_string().contains("five times in a row"), "{error}");
    }
}
