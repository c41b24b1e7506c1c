//! The verbs of an attempt that wants any permit of a key, as changes of one permit after the other.

use std::sync::Arc;

use super::Memory;
use super::change::{Change, HandOff};
use super::state::State;
use crate::core::backend::{AcquireReply, Attempt, Enqueued, Release, Remaining};
use crate::core::process::clock::tokio_time;

struct FreePermits<'a> {
    state: &'a mut State,
    attempt: &'a Attempt,
    hand_offs: Vec<HandOff>,
}

impl Memory {
    pub(super) fn acquire_permit(&self, attempt: &Arc<Attempt>) -> AcquireReply {
        attempt.mark_sent(tokio_time());
        let found = self.permits(attempt, |permits| {
            let own =
                permits.find(|permit| permit.is_held_by(attempt).then(|| permit.acquire(attempt)));
            let free = |permit: &mut Change<'_>| {
                permit.is_free().then(|| (!permit.has_waiters()).then(|| permit.acquire(attempt)))
            };
            match own.map(Some).or_else(|| permits.find(free)) {
                Some(found) => found,
                None => Some(permits.busy()),
            }
        });
        found.unwrap_or_else(|| self.acquire_in_turn(attempt))
    }

    /// Gives what is free to those in the queue that can be reached, and takes what is left. The attempt does not stay
    /// in the queue.
    fn acquire_in_turn(&self, attempt: &Arc<Attempt>) -> AcquireReply {
        let Enqueued::Granted(grant) = self.enqueue_for_permit(attempt) else {
            self.leave_permits(attempt);
            return AcquireReply::Busy;
        };
        AcquireReply::Granted(grant)
    }

    pub(super) fn enqueue_for_permit(&self, attempt: &Arc<Attempt>) -> Enqueued {
        attempt.mark_sent(tokio_time());
        let granted = |found: &Enqueued| matches!(found, Enqueued::Granted(_));
        self.permits(attempt, |permits| {
            let own =
                permits.find(|permit| permit.is_held_by(attempt).then(|| permit.enqueue(attempt)));
            let mut next = |permit: &mut Change<'_>| {
                // What is free is the first waiter's, which may be this attempt.
                Some(permit.is_free().then(|| permit.enqueue(attempt))?).filter(granted)
            };
            let found = own.or_else(|| permits.find(&mut next));
            found.unwrap_or_else(|| permits.queued(attempt))
        })
    }

    pub(super) fn leave_permits(&self, attempt: &Attempt) {
        self.permits(attempt, |permits| {
            permits.find(|permit| {
                permit.leave(attempt);
                None::<()>
            })
        });
    }

    pub(super) fn release_permits(&self, attempt: &Attempt) -> Release {
        self.permits(attempt, |permits| {
            let own = permits
                .find(|permit| permit.is_held_by(attempt).then(|| permit.release(attempt, None).0));
            own.unwrap_or(Release::Absent)
        })
    }

    fn permits<T>(&self, attempt: &Attempt, verb: impl FnOnce(&mut FreePermits<'_>) -> T) -> T {
        let mut state = self.state.lock();
        let mut permits = FreePermits { state: &mut state, attempt, hand_offs: Vec::new() };
        let found = verb(&mut permits);
        let hand_offs = permits.hand_offs;
        drop(state);
        for (listener, wake_up) in hand_offs {
            listener.on_wake_up(wake_up);
        }
        found
    }
}

impl FreePermits<'_> {
    fn find<T>(&mut self, mut verb: impl FnMut(&mut Change<'_>) -> Option<T>) -> Option<T> {
        self.attempt.local_permit.iter().flat_map(|local_permit| local_permit.members()).find_map(
            |permit| {
                let (found, hand_off) = self.state.change(permit, &mut verb);
                self.hand_offs.extend(hand_off);
                found
            },
        )
    }

    /// All are taken, perhaps by a pause, which the first shows.
    fn busy(&mut self) -> AcquireReply {
        let attempt = self.attempt;
        self.find(|permit| {
            permit.mark_busy(attempt);
            Some(())
        });
        AcquireReply::Busy
    }

    /// All are taken: the attempt waits for the first that becomes free.
    fn queued(&mut self, attempt: &Arc<Attempt>) -> Enqueued {
        let mut kept_for = Vec::new();
        self.busy();
        self.find(|permit| {
            permit.join(attempt);
            kept_for.extend(permit.kept_for());
            None::<()>
        });
        Enqueued::Queued(kept_for.into_iter().min().map_or(Remaining::Unknown, Remaining::Time))
    }
}
