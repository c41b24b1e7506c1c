//! The state machine of one lock in one locker: which calls wait, and what their attempts have in the backend.
//!
//! Calls wait in the order of arrival. All together have one attempt, which queries for the first call and keeps one
//! entry in the queue of Redis. A reply that grants it makes a turn, which the first call gets. When its body has
//! ended, the turn is passed to the next call without a request, as often as the grant allows; then it is released, and
//! the same step puts the line's next attempt at the end of the queue. The line queries when it is new, when a wake-up
//! says that the lock is reserved for it, and every [`RECHECK_INTERVAL`]: a wake-up may be lost, and a waiter of
//! another process may have died with its reservation. A query may be answered after its attempt was given up: until
//! then the attempt is a leftover, and what it is granted is released.
//!
//! It is pure: events come in with the time, and [`Actions`] go out. An attempt is one of these:
//!
//! | state | begins | ends |
//! |---|---|---|
//! | queued | `came_due`: a query queues it; `releasing`: a release does. It queries again when it is `woken` | it is granted, or no call waits |
//! | turn | `answered`: the first call has it, and after `passed` the next | `released`, `lost`, `deferred`, `returned` |
//! | leftover | it is no longer queued, or its turn ends, while a query about it is under way | that was answered, or given up |

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::parts::{Actions, Behind, Granted, LastReply, TurnEnd, WaitingCall};
use self::parts::{LineTurn, QueueEntry};
use crate::core::backend::{Attempt, Enqueued, Fault, Grant, Remaining};
use crate::core::process::clock::Moment;
use crate::core::types::error::{LockError, LockErrorKind};
use crate::core::types::owner::OwnerToken;
use crate::core::types::slot::Slot;

mod parts;
#[cfg(test)]
mod tests;

/// Shorter than the second for which a hand-off reserves the lock, so a lost wake-up does not cost the line its
/// reservation.
///
/// See "What if a wake-up is lost?" in DESIGN.md.
pub(crate) const RECHECK_INTERVAL: Duration = Duration::from_millis(800);

/// After this long without an answer, waiters end with an error.
///
/// See "When does a call without a wait limit give up?" in DESIGN.md.
pub(crate) const GIVE_UP_AFTER: Duration = Duration::from_secs(30);

/// The calls of one locker that wait for one lock; a `C` is where a call is answered.
pub(crate) struct Line<C> {
    waiting: VecDeque<WaitingCall<C>>,
    /// There is one only while a call waits.
    entry: Option<QueueEntry>,
    turn: Option<LineTurn>,
    /// Attempts that are no longer queued and have no turn, but have a query under way.
    leftovers: Vec<QueueEntry>,
    pub(super) last_reply: LastReply,
    /// Whether the backend has ever answered this line, or a call that joined it.
    was_answered: bool,
    failing_since: Option<Moment>,
    /// When the next query without a wake-up is due, if the last event changed that.
    pub(super) due: Option<Moment>,
}

impl<C> Line<C> {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn queued_owner(&self) -> Option<&OwnerToken> {
        self.entry.as_ref().map(|entry| &entry.attempt.owner)
    }

    pub(crate) fn attempt(&self) -> Option<&Attempt> {
        self.entry.as_ref().map(|entry| &*entry.attempt)
    }

    pub(crate) fn slot(&self) -> Option<Slot> {
        self.entry.as_ref().map(|entry| entry.attempt.slot)
    }

    pub(crate) fn is_over(&self) -> bool {
        debug_assert!(self.entry.is_none() || !self.waiting.is_empty(), "no call waits there");
        self.waiting.is_empty() && self.turn.is_none() && self.leftovers.is_empty()
    }

    pub(crate) fn joined(
        &mut self,
        waiter: WaitingCall<C>,
        last_reply: LastReply,
        behind: Behind,
        now: Moment,
    ) {
        if self.waiting.is_empty() {
            self.due = Some(match behind {
                // The holder of a turn passes it on, or queues the line again; if not, the line queries.
                _ if self.turn.is_some() => now.after(RECHECK_INTERVAL),
                Behind::Holder => now,
                Behind::Try(limit) => now.after(limit),
            });
        }
        let index = self.waiting.partition_point(|other| other.number < waiter.number);
        debug_assert!(self.waiting.get(index).is_none_or(|next| next.number > waiter.number));
        self.waiting.insert(index, waiter);
        self.hears(last_reply);
    }

    /// A try of another call has ended. If the line waited for that, it queries now.
    pub(crate) fn tried(&mut self, last_reply: LastReply, now: Moment) {
        if self.waiting.is_empty() {
            return;
        }
        if self.entry.is_none() && self.turn.is_none() {
            self.due = Some(now);
        }
        self.hears(last_reply);
    }

    fn hears(&mut self, last_reply: LastReply) {
        match last_reply {
            LastReply::Busy => self.was_reached(),
            LastReply::Fault(_) => self.last_reply = last_reply,
            LastReply::Nothing => {}
        }
    }

    /// A call leaves the line, or a turn that it has not received yet.
    ///
    /// A wake-up may cross the withdrawal of the last call's queue entry:
    /// 1. the call leaves, and the entry is withdrawn;
    /// 2. a release that reaches the backend first reserves the lock for the entry, and sends a wake-up;
    /// 3. the withdrawal finds the lock reserved, and hands it off again;
    /// 4. the wake-up finds no entry, and changes nothing.
    ///
    /// Tests: `a_wake_up_that_crosses_a_withdrawal_changes_nothing`, `a_grant_during_a_cancellation_reaches_the_next_waiter`.
    pub(crate) fn left(&mut self, number: u64, now: Moment) -> Actions<C> {
        if let Ok(index) = self.waiting.binary_search_by_key(&number, |waiter| waiter.number) {
            drop(self.waiting.remove(index));
            return self.close(Actions::default());
        }
        let given = self.turn.as_ref().filter(|turn| turn.given_to == number);
        let attempt = given.map(|turn| Arc::clone(&turn.entry.attempt));
        attempt.map_or_else(Actions::default, |attempt| self.returned(&attempt, now))
    }

    pub(crate) fn came_due(
        &mut self,
        make: impl FnOnce(&WaitingCall<C>) -> Arc<Attempt>,
    ) -> Option<Arc<Attempt>> {
        let first = self.waiting.front()?;
        let entry = self.entry.get_or_insert_with(|| QueueEntry::new(make(first)));
        Some(entry.query(&self.waiting))
    }

    /// A wake-up says that the lock is reserved for this attempt, so the line queries: anyone may have sent it, and the
    /// answer decides. While that query is under way, other wake-ups start none.
    pub(crate) fn woken(&mut self, owner: &OwnerToken) -> Actions<C> {
        let is_woken = |entry: &mut QueueEntry| entry.attempt.owner == *owner && entry.wake();
        let entry = self.entry.as_mut().and_then(|entry| is_woken(entry).then_some(entry));
        let query = entry.map(|entry| entry.query(&self.waiting));
        Actions { query, ..Actions::default() }
    }

    /// A wake-up may have been missed: the next query is due as soon as one under way is answered.
    pub(crate) fn queries_again(&mut self) {
        if let Some(entry) = &mut self.entry {
            entry.is_woken_again |= entry.queries > 0;
        }
    }

    pub(crate) fn answered(
        &mut self,
        attempt: &Arc<Attempt>,
        answer: &Enqueued,
        now: Moment,
    ) -> Actions<C> {
        let is_leftover = self.query_ends(attempt, true);
        match answer {
            Enqueued::Granted(_) if is_leftover => return Actions::release(attempt),
            Enqueued::Granted(grant) => return self.begin(attempt, grant, now),
            Enqueued::Queued(remaining) | Enqueued::Done(remaining) if self.waits_as(attempt) => {
                let pause = match remaining {
                    Remaining::Time(time) => RECHECK_INTERVAL.min(*time),
                    Remaining::Endless | Remaining::Unknown => RECHECK_INTERVAL,
                };
                let entry = self.entry.as_mut();
                let is_woken_again = entry.is_some_and(|it| mem::take(&mut it.is_woken_again));
                self.due = Some(if is_woken_again { now } else { now.after(pause) });
            }
            Enqueued::Queued(_) | Enqueued::Done(_) => {}
        }
        self.was_reached();
        match answer {
            _ if is_leftover => Actions::withdraw(attempt),
            Enqueued::Done(_) if self.waits_as(attempt) => self.done(),
            Enqueued::Done(_) | Enqueued::Granted(_) | Enqueued::Queued(_) => Actions::default(),
        }
    }

    /// The waiting calls with `once` are refused as done, and the others continue to wait.
    fn done(&mut self) -> Actions<C> {
        let (ended, waiting) = mem::take(&mut self.waiting).into_iter().partition(|it| it.is_once);
        self.waiting = waiting;
        let fault = Fault::new(LockErrorKind::Done, LockError::run_is_done("", ""));
        self.close(Actions { refuse: Some((fault, ended)), ..Actions::default() })
    }

    /// A query timed out or failed. The line queries again, unless the fault is final, or lasts for [`GIVE_UP_AFTER`].
    ///
    /// Until the backend has answered a call of the line, a query that fails ends all of them at once.
    pub(crate) fn failed(
        &mut self,
        attempt: Option<&Arc<Attempt>>,
        fault: &Fault,
        now: Moment,
    ) -> Actions<C> {
        self.last_reply = LastReply::Fault(Box::new(fault.clone()));
        let since = *self.failing_since.get_or_insert(now);
        let leftover = attempt.filter(|attempt| self.is_leftover(attempt));
        let mut actions = leftover.map_or_else(Actions::default, Actions::withdraw);
        let is_lasting = fault.kind != LockErrorKind::Unavailable;
        let is_first = !self.was_answered && leftover.is_none();
        if is_lasting || is_first || now.since(since) >= GIVE_UP_AFTER {
            actions.refuse = Some((fault.clone(), mem::take(&mut self.waiting)));
        } else if !self.waiting.is_empty() {
            self.due = Some(now.after(RECHECK_INTERVAL / 5));
        }
        self.close(actions)
    }

    pub(crate) fn broken(&mut self, fault: &Fault) {
        self.last_reply = LastReply::Fault(Box::new(fault.clone()));
    }

    pub(crate) fn passed(&mut self, attempt: &Arc<Attempt>, now: Moment) -> Actions<C> {
        let turn = self.turn.as_mut().filter(|turn| turn.entry.is_of(attempt));
        let deliver = turn.and_then(|turn| turn.pass(&mut self.waiting, now));
        self.close(Actions { deliver, ..Actions::default() })
    }

    /// The release of this attempt begins. Returns what is sent with it: the line's next attempt, which the same script
    /// queues.
    ///
    /// The turn is over when the release was answered. A query about it may still be under way:
    /// 1. the query is sent, and is slow;
    /// 2. another query is granted the lock, the body runs, and the release frees the lock;
    /// 3. the query lands, on another connection, and takes the lock or joins the queue;
    /// 4. its answer comes before that of the release, and looks like a repetition of the grant.
    ///
    /// So the attempt is withdrawn once the release was answered, or given up. See "When is a turn over, and what is a
    /// repeated or late grant?" in DESIGN.md.
    /// Tests: `a_query_that_a_release_may_overtake_is_withdrawn`, `a_query_behind_its_release_takes_no_lock`.
    pub(crate) fn releasing(
        &mut self,
        attempt: &Attempt,
        make: Option<impl FnOnce(&WaitingCall<C>) -> Arc<Attempt>>,
        now: Moment,
    ) -> TurnEnd {
        let turn = self.turn.as_ref().filter(|turn| turn.entry.is_of(attempt));
        // If another turn has begun, the lock was lost, and is released alone.
        let Some(turn) = turn else { return TurnEnd::default() };
        let may_land_late = turn.entry.queries > 0 || turn.entry.is_unsure;
        // Without an attempt the line queries by itself.
        let next = make.and_then(|make| self.came_due(make));
        if next.is_some() {
            // Nothing hands the lock off at the end of a minimum hold, so the line queries then.
            let rest = attempt.min_hold.rest(|| now).unwrap_or(RECHECK_INTERVAL);
            self.due = Some(now.after(rest.min(RECHECK_INTERVAL)));
        }
        TurnEnd { next, may_land_late, ..TurnEnd::default() }
    }

    pub(crate) fn released(
        &mut self,
        attempt: &Arc<Attempt>,
        TurnEnd { next, may_land_late, is_answered, grant }: TurnEnd,
        now: Moment,
    ) -> Actions<C> {
        self.end_turn(attempt, now);
        if is_answered {
            attempt.min_hold.end();
        }
        if is_answered && next.as_ref().is_some_and(|next| self.waits_as(next)) {
            // The release has queued the line, which queries by itself when `releasing` said.
            self.due = None;
        }
        let mut actions = match (&next, grant) {
            (Some(next), Some(grant)) => self.answered(next, &Enqueued::Granted(grant), now),
            (Some(next), None) if self.query_ends(next, is_answered) => Actions::withdraw(next),
            _ => Actions::default(),
        };
        // A withdrawal would end a minimum hold early.
        let withdraws = may_land_late && !attempt.min_hold.is_set();
        actions.withdraw.extend(withdraws.then(|| Arc::clone(attempt)));
        actions
    }

    pub(crate) fn deferred(&mut self, attempt: &Arc<Attempt>, now: Moment) -> Actions<C> {
        self.end_turn(attempt, now);
        Actions::default()
    }

    /// The lock was lost; an earlier query may have queued the attempt again.
    pub(crate) fn lost(&mut self, attempt: &Arc<Attempt>, now: Moment) -> Actions<C> {
        self.end_turn(attempt, now);
        Actions::withdraw(attempt)
    }

    /// Its call does not want the turn. Its lock may have ended before, and an earlier query may have queued the
    /// attempt again.
    pub(crate) fn returned(&mut self, attempt: &Arc<Attempt>, now: Moment) -> Actions<C> {
        let passed = self.passed(attempt, now);
        if passed.deliver.is_some() {
            return passed;
        }
        self.end_turn(attempt, now);
        Actions::give_back(attempt)
    }

    /// The turn begins; the first waiting call of the same kind (`once` or not) gets it.
    fn begin(&mut self, attempt: &Attempt, grant: &Grant, now: Moment) -> Actions<C> {
        let Some(entry) = self.entry.take_if(|entry| entry.is_of(attempt)) else {
            // Another answer has begun this turn already.
            self.turn.iter_mut().for_each(|turn| turn.repeated(grant));
            return Actions::default();
        };
        let Some((at, first)) = entry.first_of(&self.waiting) else {
            // Only calls of the other kind wait. They need a queue entry with an owner token of that kind.
            self.due = Some(now);
            let actions = Actions::give_back(&entry.attempt);
            self.keep_leftover(Some(entry));
            return actions;
        };
        if !grant.lasts(first.ttl) {
            // The queue entry was made for a shorter lease, by a call that has left. This call queries for its own.
            self.due = Some(now);
            self.entry = Some(entry);
            return Actions::default();
        }
        let Some(first) = self.waiting.remove(at) else {
            return Actions::give_back(&entry.attempt);
        };
        entry.attempt.mark_turn();
        self.was_reached();
        self.due = Some(now.after(RECHECK_INTERVAL));
        let turn = LineTurn::new(entry, grant, &first, now);
        let deliver = Some((first.answer, turn.granted()));
        let former = self.turn.replace(turn);
        let lost = former.iter().filter(|turn| turn.is_over_by(grant));
        // As in `lost`. The call that was given the turn may be gone before it can say so.
        let withdraw = lost.map(|turn| Arc::clone(&turn.entry.attempt)).collect();
        self.keep_leftover(former.map(|turn| turn.entry));
        Actions { deliver, withdraw, ..Actions::default() }
    }

    /// Ends the turn of this attempt, and no later turn; the next query is due.
    fn end_turn(&mut self, attempt: &Attempt, now: Moment) {
        let Some(turn) = self.turn.take_if(|turn| turn.entry.is_of(attempt)) else { return };
        self.keep_leftover(Some(turn.entry));
        if !self.waiting.is_empty() {
            self.due = Some(now);
        }
    }

    fn close(&mut self, mut actions: Actions<C>) -> Actions<C> {
        if let Some(entry) = self.entry.take_if(|_| self.waiting.is_empty()) {
            actions.withdraw.push(Arc::clone(&entry.attempt));
            self.keep_leftover(Some(entry));
        }
        actions
    }

    fn keep_leftover(&mut self, entry: Option<QueueEntry>) {
        self.leftovers.extend(entry.filter(|entry| entry.queries > 0));
    }

    fn waits_as(&self, attempt: &Attempt) -> bool {
        self.entry.as_ref().is_some_and(|entry| entry.is_of(attempt))
    }

    fn is_leftover(&self, attempt: &Attempt) -> bool {
        self.leftovers.iter().any(|entry| entry.is_of(attempt))
    }

    /// A query was answered, or given up; returns whether its attempt is a leftover.
    pub(crate) fn query_ends(&mut self, attempt: &Attempt, is_answered: bool) -> bool {
        let is_leftover = self.is_leftover(attempt);
        let turn = self.turn.as_mut().map(|turn| &mut turn.entry);
        let mut entries = self.entry.iter_mut().chain(turn).chain(&mut self.leftovers);
        let entry = entries.find(|entry| entry.is_of(attempt));
        debug_assert!(entry.is_some(), "a query about an attempt that no line knows");
        if let Some(entry) = entry {
            entry.query_ends(is_answered);
        }
        self.leftovers.retain(|entry| entry.queries > 0);
        is_leftover
    }

    fn was_reached(&mut self) {
        self.last_reply = LastReply::Busy;
        self.was_answered = true;
        self.failing_since = None;
    }
}

impl<C> Default for Line<C> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            entry: None,
            turn: None,
            leftovers: Vec::new(),
            last_reply: LastReply::Nothing,
            was_answered: false,
            failing_since: None,
            due: None,
        }
    }
}
