//! The parts of a line: its calls, its attempts, and the actions that an event leads to.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use crate::core::backend::{Attempt, Fault, Grant};
use crate::core::labels::label::Label;
use crate::core::process::clock::Moment;
use crate::core::request_id::RequestId;
use crate::core::types::options::Ttl;

/// A turn is passed on no longer, because other processes wait.
const LENGTH: Duration = Duration::from_millis(5);

#[derive(Clone, Debug)]
pub(crate) enum LastReply {
    Nothing,
    Busy,
    Fault(Box<Fault>),
}

/// What the first call of a line waits behind, if not a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Behind {
    /// Another holder, or none. The line queries at once: the order of the queries is the order of the queue.
    Holder,
    /// A try of another call of this process; the line waits for it at most this long.
    Try(Duration),
}

pub(crate) struct WaitingCall<C> {
    pub(crate) number: u64,
    pub(crate) ttl: Ttl,
    pub(crate) is_fair: bool,
    /// The owner token under which it holds the lock says so.
    pub(crate) is_once: bool,
    pub(crate) identity: Option<RequestId>,
    pub(crate) label: &'static Label,
    pub(crate) answer: C,
}

/// What the caller has to do after an event. Each waiting call gets a turn or an error, once, unless it leaves.
#[must_use = "the line counts on its actions"]
pub(crate) struct Actions<C> {
    pub(crate) deliver: Option<(C, Granted)>,
    pub(crate) query: Option<Arc<Attempt>>,
    /// The backend is to forget these attempts, in the queue and as holders.
    pub(crate) withdraw: Vec<Arc<Attempt>>,
    pub(crate) release: Option<Arc<Attempt>>,
    pub(crate) refuse: Option<(Fault, VecDeque<WaitingCall<C>>)>,
}

impl<C> Actions<C> {
    pub(super) fn release(attempt: &Arc<Attempt>) -> Self {
        Self { release: Some(Arc::clone(attempt)), ..Self::default() }
    }

    pub(super) fn withdraw(attempt: &Arc<Attempt>) -> Self {
        Self { withdraw: vec![Arc::clone(attempt)], ..Self::default() }
    }

    /// Withdraws and releases: the next call of this process waits for a release, and not for a withdrawal.
    pub(super) fn give_back(attempt: &Arc<Attempt>) -> Self {
        Self { withdraw: vec![Arc::clone(attempt)], ..Self::release(attempt) }
    }
}

impl<C> Default for Actions<C> {
    fn default() -> Self {
        Self { deliver: None, query: None, withdraw: Vec::new(), release: None, refuse: None }
    }
}

pub(crate) struct Granted {
    pub(crate) attempt: Arc<Attempt>,
    pub(crate) grant: Grant,
    pub(crate) is_passed_on: bool,
}

#[derive(Default)]
pub(crate) struct TurnEnd {
    pub(crate) next: Option<Arc<Attempt>>,
    /// Whether a query about the ended attempt may land behind the release.
    pub(super) may_land_late: bool,
    pub(crate) is_answered: bool,
    pub(crate) grant: Option<Grant>,
}

/// An attempt that is in the backend's queue, or was, and its queries under way.
pub(super) struct QueueEntry {
    pub(super) attempt: Arc<Attempt>,
    pub(super) queries: u32,
    /// Whether a query was given up, which may reach the backend at any time.
    pub(super) is_unsure: bool,
    /// Whether a wake-up has made the line query, and no query has ended since.
    is_woken: bool,
    /// Whether another came meanwhile: the lock may have been reserved after that query found it taken.
    pub(super) is_woken_again: bool,
}

impl QueueEntry {
    pub(super) fn new(attempt: Arc<Attempt>) -> Self {
        Self { attempt, queries: 0, is_unsure: false, is_woken: false, is_woken_again: false }
    }

    pub(super) fn wake(&mut self) -> bool {
        self.is_woken_again |= self.is_woken;
        !mem::replace(&mut self.is_woken, true)
    }

    pub(super) fn is_of(&self, attempt: &Attempt) -> bool {
        self.attempt.owner == attempt.owner
    }

    pub(super) fn first_of<'a, C>(
        &self,
        waiting: &'a VecDeque<WaitingCall<C>>,
    ) -> Option<(usize, &'a WaitingCall<C>)> {
        let is_once = self.attempt.owner.is_of_once();
        waiting.iter().enumerate().find(|(_, waiter)| waiter.is_once == is_once)
    }

    /// Counts a query about it, for a lease that the first call can use. Turns begin and end under the same mutex, so
    /// the end of a turn sees every query that may land behind its release.
    pub(super) fn query<C>(&mut self, waiting: &VecDeque<WaitingCall<C>>) -> Arc<Attempt> {
        if let Some((_, first)) = self.first_of(waiting).filter(|(_, it)| it.ttl > self.attempt.ttl)
        {
            self.attempt = self.attempt.with_ttl(first.ttl);
        }
        self.queries += 1;
        Arc::clone(&self.attempt)
    }

    pub(super) fn query_ends(&mut self, is_answered: bool) {
        debug_assert!(self.queries > 0, "a query ends that did not begin");
        self.queries = self.queries.saturating_sub(1);
        self.is_unsure |= !is_answered && self.attempt.sent_at().is_some();
        self.is_woken = false;
    }
}

pub(super) struct LineTurn {
    pub(super) entry: QueueEntry,
    pub(super) given_to: u64,
    is_fair: bool,
    began: Moment,
    grant: Grant,
    is_passed_on: bool,
}

impl LineTurn {
    pub(super) fn new<C>(
        entry: QueueEntry,
        grant: &Grant,
        first: &WaitingCall<C>,
        now: Moment,
    ) -> Self {
        let (given_to, is_fair) = (first.number, first.is_fair);
        Self { entry, given_to, is_fair, began: now, grant: grant.clone(), is_passed_on: false }
    }

    /// Whether this grant of another attempt ends this turn: it is of the same permit, or of the one lock.
    pub(super) fn is_over_by(&self, grant: &Grant) -> bool {
        self.grant.permit() == grant.permit()
    }

    /// There is another grant to the attempt. It repeats the first, unless it is of another permit: while a slot moves
    /// key by key, a request may take one permit while a release hands off another. Which one is newer is not known
    /// here; both are given back at the end of the turn.
    pub(super) fn repeated(&mut self, grant: &Grant) {
        self.entry.is_unsure |= self.grant.permit() != grant.permit();
    }

    pub(super) fn pass<C>(
        &mut self,
        waiting: &mut VecDeque<WaitingCall<C>>,
        now: Moment,
    ) -> Option<(C, Granted)> {
        let next = waiting.front()?;
        // The lease of the next call counts from the same request.
        let is_held = self.grant.holds(next.ttl, now) && now.since(self.began) < LENGTH;
        let is_alike = next.is_once == self.entry.attempt.owner.is_of_once();
        if !is_held || self.is_fair || next.is_fair || !is_alike {
            return None;
        }
        let grant = self.grant.pass()?;
        let next = waiting.pop_front()?;
        (self.given_to, self.grant, self.is_passed_on) = (next.number, grant, true);
        Some((next.answer, self.granted()))
    }

    pub(super) fn granted(&self) -> Granted {
        let (attempt, grant) = (Arc::clone(&self.entry.attempt), self.grant.clone());
        Granted { attempt, grant, is_passed_on: self.is_passed_on }
    }
}
