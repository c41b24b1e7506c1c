//! One process of a random order: its line, its calls, and what is under way between them and the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::store::KEY;
use crate::core::backend::{Attempt, Enqueued, Fault, WakeUp};
use crate::core::process::clock::Moment;
use crate::core::types::error::LockErrorKind;
use crate::core::types::options::Ttl;
use crate::core::types::owner::{Origin, OwnerToken};
use crate::core::waiters::line::{Actions, Behind, Granted, LastReply, Line, TurnEnd, WaitingCall};

pub(super) enum Packet {
    /// A query on its way to the store, and whether its answer will arrive.
    Query(Arc<Attempt>, bool),
    Answer(Arc<Attempt>, Enqueued),
    /// No answer came in time.
    NoAnswer(Arc<Attempt>),
    Unanswered(Arc<Attempt>),
    Withdrawal(Arc<Attempt>),
    Deferred(Arc<Attempt>),
    Release(Arc<Attempt>, TurnEnd, bool),
    Released(Arc<Attempt>, TurnEnd),
    Published(WakeUp),
    /// A try that calls may wait for, and its last reply.
    Tried(LastReply),
    Delivered(u64, Granted),
}

pub(super) struct Process {
    origin: Origin,
    pub(super) line: Line<u64>,
    pub(super) due: Option<Moment>,
    pub(super) under_way: Vec<Packet>,
    pub(super) waiting: BTreeSet<u64>,
    pub(super) holding: BTreeMap<u64, Arc<Attempt>>,
    next_number: u64,
}

impl Process {
    pub(super) fn new(origin: Origin, first_number: u64) -> Self {
        Self {
            origin,
            line: Line::default(),
            due: None,
            under_way: Vec::new(),
            waiting: BTreeSet::new(),
            holding: BTreeMap::new(),
            next_number: first_number,
        }
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    pub(super) fn make(&mut self) -> impl FnOnce(&WaitingCall<u64>) -> Arc<Attempt> + use<> {
        let owner = OwnerToken::at(self.origin, self.number(), None);
        |_| Arc::new(Attempt::owned(KEY, Ttl::DEFAULT, owner))
    }

    pub(super) fn new_call_joins(&mut self, is_fair: bool, behind: Behind, now: Moment) {
        let number = self.number();
        self.joins(number, is_fair, behind, now);
    }

    pub(super) fn joins(&mut self, number: u64, is_fair: bool, behind: Behind, now: Moment) {
        let ttl = Ttl::DEFAULT;
        let waiter = WaitingCall {
            number,
            ttl,
            is_fair,
            is_once: false,
            identity: None,
            label: Default::default(),
            answer: number,
        };
        // Without a try to wait for, it has tried itself.
        let last_reply =
            if matches!(behind, Behind::Holder) { LastReply::Busy } else { LastReply::Nothing };
        self.line.joined(waiter, last_reply, behind, now);
        assert!(self.waiting.insert(number));
    }

    pub(super) fn try_ends(&mut self, last_reply: LastReply, now: Moment) {
        self.line.tried(last_reply, now);
        self.take_due();
    }

    pub(super) fn leaves(&mut self, number: u64, now: Moment) {
        let is_hers = |packet: &Packet| matches!(packet, Packet::Delivered(to, _) if *to == number);
        self.under_way.retain(|packet| !is_hers(packet));
        self.waiting.remove(&number);
        let actions = self.line.left(number, now);
        self.perform(actions);
    }

    pub(super) fn comes_due(&mut self, is_sent: bool, is_heard: bool, now: Moment) {
        self.due = None;
        let make = self.make();
        if let Some(attempt) = self.line.came_due(make) {
            self.queries(attempt, is_sent, is_heard, now);
        }
        self.take_due();
    }

    /// A request may be sent long before it arrives.
    fn queries(&mut self, attempt: Arc<Attempt>, is_sent: bool, is_heard: bool, now: Moment) {
        if is_sent {
            attempt.mark_sent(now);
        }
        if !is_heard {
            self.under_way.push(Packet::NoAnswer(Arc::clone(&attempt)));
        }
        self.under_way.push(Packet::Query(attempt, is_heard));
    }

    pub(super) fn hears(&mut self, wake_up: &WakeUp) {
        let actions = self.line.woken(&wake_up.owner);
        self.perform(actions);
    }

    pub(super) fn is_refused(&mut self, now: Moment) {
        let fault = Fault::new(LockErrorKind::Refused, "no right");
        let actions = self.line.failed(None, &fault, now);
        self.perform(actions);
    }

    pub(super) fn hears_nothing(&mut self, attempt: Arc<Attempt>, now: Moment) {
        let actions = self.line.failed(Some(&attempt), &Fault::unavailable("no answer"), now);
        self.under_way.push(Packet::Unanswered(attempt));
        self.perform(actions);
    }

    pub(super) fn releases(&mut self, attempt: Arc<Attempt>, is_heard: bool, now: Moment) {
        let make = self.make();
        let turn_end = self.line.releasing(&attempt, Some(make), now);
        if let Some(next) = &turn_end.next {
            next.mark_sent(now);
        }
        self.under_way.push(Packet::Release(attempt, turn_end, is_heard));
        self.take_due();
    }

    pub(super) fn perform(&mut self, actions: Actions<u64>) {
        let Actions { deliver, query, withdraw, release, refuse } = actions;
        if let Some((number, granted)) = deliver {
            let first = self.waiting.pop_first();
            assert_eq!(first, Some(number), "a call is served before its turn, or again");
            self.under_way.push(Packet::Delivered(number, granted));
        }
        for waiter in refuse.into_iter().flat_map(|(_, waiters)| waiters) {
            assert!(self.waiting.remove(&waiter.answer), "a call is refused that does not wait");
        }
        let is_sent = |attempt: &Arc<Attempt>| attempt.sent_at().is_some();
        let withdrawn = withdraw.into_iter().filter(is_sent).map(Packet::Withdrawal);
        self.under_way.extend(withdrawn);
        self.under_way.extend(release.map(Packet::Deferred));
        self.under_way.extend(query.map(|attempt| Packet::Query(attempt, true)));
        self.take_due();
    }

    pub(super) fn take_due(&mut self) {
        self.due = self.line.due.take().or(self.due);
        assert_eq!(self.line.len(), self.waiting.len(), "a call is forgotten, or kept");
        assert!(self.is_attended(), "calls wait, and nothing will happen");
    }

    fn is_attended(&self) -> bool {
        self.waiting.is_empty() || self.due.is_some() || !self.under_way.is_empty()
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.holding.is_empty() && self.under_way.is_empty()
    }
}
