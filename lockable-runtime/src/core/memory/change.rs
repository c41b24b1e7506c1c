use std::sync::{Arc, Weak};
use std::time::Duration;

use super::state::{Counting, Lock, State, StoredKey, TURN};
use crate::core::backend::{
    AcquireReply, Attempt, Enqueued, Events, Grant, Release, Remaining, Renewal, Renewed, Reserved,
    WakeUp,
};
use crate::core::process::clock::{Moment, tokio_time};
use crate::core::types::key::LockKey;
use crate::core::types::owner::{Held, Origin, OwnerToken};
use crate::core::types::permit::PermitsKey;

pub(crate) struct Change<'a> {
    permit: Option<LockKey>,
    /// Has a lock only while that lasts.
    place: &'a mut StoredKey,
    counting: &'a mut Counting,
    lockers: &'a [(Origin, Weak<dyn Events>)],
    now: Moment,
    /// For the waiter that has the reservation.
    hand_off: Option<HandOff>,
}

/// A wake-up of a locker's waiter, which is sent outside of the store's mutex.
pub(crate) type HandOff = (Arc<dyn Events>, WakeUp);

impl State {
    pub(crate) fn change<T>(
        &mut self,
        key: LockKey,
        verb: impl FnOnce(&mut Change<'_>) -> T,
    ) -> (T, Option<HandOff>) {
        let change = |state: &mut Self, key| {
            let mut change = Change::of(state, key, tokio_time());
            (verb(&mut change), change.hand_off)
        };
        if PermitsKey::of_permit(&key).is_none() {
            return change(self, key);
        }
        self.with_queue(&key.clone(), |state| change(state, key))
    }
}

impl<'a> Change<'a> {
    fn of(state: &'a mut State, key: LockKey, now: Moment) -> Self {
        state.sweep_when_grown(now);
        let permit = PermitsKey::of_permit(&key).map(|_| key.clone());
        let place = state.places.entry(key).or_default();
        if place.expires() <= now {
            place.lock = None;
        }
        let counting = &mut state.counting;
        let lockers = &state.lockers;
        Self { permit, place, counting, lockers, now, hand_off: None }
    }

    pub(crate) fn is_free(&self) -> bool {
        self.place.lock.as_ref().is_none_or(|lock| lock.ends <= self.now)
    }

    pub(crate) fn has_waiters(&self) -> bool {
        !self.place.queue.is_empty()
    }

    pub(crate) fn kept_for(&self) -> Option<Duration> {
        let lock = self.place.lock.as_ref().filter(|lock| lock.is_released)?;
        Some(lock.ends.since(self.now))
    }

    pub(crate) fn acquire(&mut self, attempt: &Attempt) -> AcquireReply {
        let since = attempt.mark_sent(self.now);
        if self.take(attempt).is_none() {
            self.mark_busy(attempt);
            return if self.is_done() { AcquireReply::Done } else { AcquireReply::Busy };
        }
        let fence = Reserved::single(self.count(attempt));
        let grant = Grant::answered(attempt, fence, since);
        AcquireReply::Granted(grant.of_permit(self.permit.clone()))
    }

    pub(crate) fn enqueue(&mut self, attempt: &Arc<Attempt>) -> Enqueued {
        let now = self.now;
        attempt.mark_sent(now);
        // The grace after a minimum hold ends when the first waiter asks.
        self.place.lock.take_if(|lock| lock.ends <= now);
        let first = self.place.queue.front();
        if self.place.lock.is_none() && first.is_some_and(|first| first.owner != attempt.owner) {
            self.hand_on(Some(attempt));
        }
        if let Some(grant) = self.grant(attempt) {
            self.place.withdraw(attempt);
            return Enqueued::Granted(grant);
        }
        self.place.join(attempt);
        self.mark_busy(attempt);
        let lock = self.place.lock.as_ref();
        let remaining =
            lock.map_or(Remaining::Unknown, |lock| Remaining::Time(lock.ends.since(now)));
        if self.is_done() { Enqueued::Done(remaining) } else { Enqueued::Queued(remaining) }
    }

    pub(crate) fn join(&mut self, attempt: &Arc<Attempt>) {
        self.place.join(attempt);
    }

    pub(crate) fn leave(&mut self, attempt: &Attempt) {
        self.place.withdraw(attempt);
        if self.is_held_by(attempt) {
            self.evict();
        }
    }

    pub(crate) fn renew(&mut self, renewal: &Renewal) -> Renewed {
        match &mut self.place.lock {
            None => Renewed::Absent,
            Some(lock) if !lock.is_held_by(&renewal.attempt) => Renewed::Taken,
            Some(lock) => {
                if let Some(ttl) = renewal.ttl {
                    lock.prolong(ttl, self.now);
                }
                Renewed::Held
            }
        }
    }

    pub(crate) fn transfer(&mut self, from: &Attempt, to: &Attempt) -> Renewed {
        to.mark_sent(self.now);
        let seen = self.inspect();
        let is_seen_as = |from: &Attempt| {
            seen.as_ref().is_some_and(|held| held.owner.text() == from.owner.as_ref())
        };
        match &mut self.place.lock {
            None => return Renewed::Absent,
            // What an operator ends may be kept, with a mark.
            Some(lock) if lock.is_held_by(from) || is_seen_as(from) => {
                *lock = Lock::held(&to.owner, self.now.after(to.ttl.duration()));
            }
            // The request is repeated.
            Some(lock) if lock.is_held_by(to) => lock.prolong(to.ttl, self.now),
            Some(_) => return Renewed::Taken,
        }
        Renewed::Held
    }

    pub(crate) fn count(&mut self, attempt: &Attempt) -> u64 {
        self.counting.reserve(attempt, 1, self.now)
    }

    /// Releases, and queues the next attempt behind the others; returns the grant of that if its turn has come at once.
    pub(crate) fn release(
        &mut self,
        attempt: &Attempt,
        next: Option<&Arc<Attempt>>,
    ) -> (Release, Option<Grant>) {
        if let Some(next) = next {
            next.mark_sent(self.now);
            if self.is_held_by(next) {
                // A repeated request finds what the first one did; or another release has kept the lock for it.
                return (Release::Released, self.grant(next));
            }
            self.place.join(next);
        }
        let released = self.end_hold(attempt);
        let is_free = released == Release::Released && self.place.lock.is_none();
        let is_turn = is_free && self.hand_on(next.map(|next| &**next));
        (released, next.filter(|_| is_turn).and_then(|next| self.grant(next)))
    }

    pub(crate) fn inspect(&self) -> Option<Held> {
        self.place.held(self.now)
    }

    /// Ends a grant before its time, as a server does that loses it, and hands the lock to the first waiter.
    pub(crate) fn evict(&mut self) -> Option<Lock> {
        let lock = self.place.lock.take()?;
        self.hand_on(None);
        Some(lock)
    }

    /// The lock, if the attempt is its holder, or could become it because it was free.
    pub(crate) fn take(&mut self, attempt: &Attempt) -> Option<&mut Lock> {
        let ends = self.now.after(attempt.ttl.duration());
        let lock = self.place.lock.get_or_insert_with(|| Lock::held(&attempt.owner, ends));
        lock.is_held_by(attempt).then_some(lock)
    }

    pub(crate) fn end_hold(&mut self, attempt: &Attempt) -> Release {
        match &mut self.place.lock {
            None => return Release::Absent,
            Some(lock) if lock.owner != attempt.owner => return Release::Taken,
            // The release is repeated.
            Some(lock) if lock.is_released => {}
            Some(lock) => match attempt.min_hold.rest(|| self.now) {
                None => self.place.lock = None,
                Some(rest) => {
                    lock.ends = self.now.after(rest);
                    lock.is_released = true;
                }
            },
        }
        Release::Released
    }

    /// Reserves a free lock for the first waiter that can be woken. Returns whether that is the asking attempt, for
    /// which the lock stays free.
    fn hand_on(&mut self, asking: Option<&Attempt>) -> bool {
        while let Some(next) = self.place.queue.pop_front() {
            if asking.is_some_and(|asking| asking.owner == next.owner) {
                return true;
            }
            if let Some(listener) = self.listener(&next.owner) {
                let ends = self.now.after(next.reservation.duration());
                self.place.lock = Some(Lock::held(&next.owner, ends));
                let key = self.permit.clone().unwrap_or_else(|| next.key.clone());
                self.hand_off = Some((listener, WakeUp { key, owner: next.owner.clone() }));
                return false;
            }
        }
        false
    }

    pub(crate) fn is_held_by(&self, attempt: &Attempt) -> bool {
        self.place.lock.as_ref().is_some_and(|lock| lock.is_held_by(attempt))
    }

    pub(crate) fn mark_busy(&self, attempt: &Attempt) {
        let held = self.inspect();
        let value = held.as_ref().map_or(&[][..], |held| held.owner.as_bytes());
        attempt.mark_busy(value, held.as_ref().and_then(|held| held.remaining));
    }

    pub(crate) fn is_done(&self) -> bool {
        let lock = self.place.lock.as_ref();
        lock.is_some_and(|lock| lock.is_released && lock.owner.is_of_once())
    }

    fn listener(&self, owner: &OwnerToken) -> Option<Arc<dyn Events>> {
        let of_owner = self.lockers.iter().find(|(origin, _)| origin.is_of(owner.as_ref()));
        of_owner.and_then(|(_, listener)| listener.upgrade())
    }

    /// The grant of a lock that is the attempt's, or free: it lasts for the whole lease from now on.
    fn grant(&mut self, attempt: &Attempt) -> Option<Grant> {
        let now = self.now;
        self.take(attempt)?.prolong(attempt.ttl, now);
        let fence = self.counting.reserve(attempt, TURN, now);
        let grant = Grant::answered(attempt, Reserved::turn(fence), now);
        Some(grant.of_permit(self.permit.clone()))
    }
}
