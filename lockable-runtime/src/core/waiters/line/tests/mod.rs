//! The actions of a line, event by event, without a server and without a clock.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::core::backend::{Remaining, Reserved};
use crate::core::types::key::LockKey;
use crate::core::types::options::Ttl;

mod once;
mod orders;
mod process;
mod queries;
mod store;
mod turns;

/// A line whose calls are answered by nothing, and the moment of the next event.
struct Case {
    line: Line<&'static str>,
    now: Moment,
}

fn case() -> Case {
    Case { line: Line::default(), now: Moment::from_nanos(1_000_000_000) }
}

fn sent() -> Arc<Attempt> {
    let attempt = Attempt::drawn(LockKey::from_static("k"), Ttl::DEFAULT);
    attempt.mark_sent(Moment::from_nanos(1_000_000_000));
    Arc::new(attempt)
}

fn sent_once() -> Arc<Attempt> {
    let owner = OwnerToken::draw(None).unwrap().of_once();
    let attempt = Attempt::owned(LockKey::from_static("k"), Ttl::DEFAULT, owner);
    attempt.mark_sent(Moment::from_nanos(1_000_000_000));
    Arc::new(attempt)
}

const DEADLINE: Duration = Duration::from_secs(1);

const BUSY: Enqueued = Enqueued::Queued(Remaining::Unknown);

impl Case {
    fn after(&mut self, millis: u64) -> Moment {
        self.now = self.now.after(Duration::from_millis(millis));
        self.now
    }

    fn joins(&mut self, number: u64, name: &'static str) {
        self.joins_as(number, name, false);
    }

    fn joins_for(&mut self, number: u64, name: &'static str, seconds: u64) {
        let ttl = Ttl::new("expire", Duration::from_secs(seconds)).unwrap();
        let waiter = WaitingCall { ttl, ..waiter(number, name, false) };
        self.line.joined(waiter, LastReply::Nothing, Behind::Holder, self.now);
    }

    fn joins_as(&mut self, number: u64, name: &'static str, is_fair: bool) {
        let waiter = waiter(number, name, is_fair);
        self.line.joined(waiter, LastReply::Nothing, Behind::Holder, self.now);
    }

    fn joins_once(&mut self, number: u64, name: &'static str) {
        let waiter = WaitingCall { is_once: true, ..waiter(number, name, false) };
        self.line.joined(waiter, LastReply::Nothing, Behind::Holder, self.now);
    }

    fn joins_after_try(&mut self, number: u64, name: &'static str) {
        let waiter = waiter(number, name, false);
        self.line.joined(waiter, LastReply::Busy, Behind::Holder, self.now);
    }

    fn joins_behind_try(&mut self, number: u64, name: &'static str) {
        let waiter = waiter(number, name, false);
        self.line.joined(waiter, LastReply::Nothing, Behind::Try(DEADLINE), self.now);
    }

    /// Queries about this attempt, or about the one that is queued.
    fn queries(&mut self, new: &Arc<Attempt>) -> Arc<Attempt> {
        self.line.due = None;
        self.line.came_due(|_| Arc::clone(new)).unwrap()
    }

    fn grant(&self, attempt: &Attempt) -> Grant {
        Grant::answered(attempt, Reserved::turn(100), self.now)
    }

    fn granted(&mut self, attempt: &Arc<Attempt>) -> Actions<&'static str> {
        let asked = self.line.woken(&attempt.owner).query.unwrap();
        assert!(asked.owner == attempt.owner);
        let grant = self.grant(&asked);
        self.answered(&asked, &Enqueued::Granted(grant))
    }

    fn granted_as(&mut self, attempt: &Arc<Attempt>, grant: Grant) -> Actions<&'static str> {
        drop(self.queries(attempt));
        self.answered(attempt, &Enqueued::Granted(grant))
    }

    fn answered(&mut self, attempt: &Arc<Attempt>, answer: &Enqueued) -> Actions<&'static str> {
        self.line.answered(attempt, answer, self.now)
    }

    fn given(&mut self) -> Arc<Attempt> {
        self.joins(0, "first");
        let attempt = self.queries(&sent());
        assert!(is_nothing(&self.answered(&attempt, &BUSY)));
        let actions = self.granted(&attempt);
        assert_eq!(delivered(&actions), Some("first"));
        attempt
    }

    fn due_in(&mut self) -> Option<Duration> {
        self.line.due.take().map(|due| due.since(self.now))
    }

    fn releasing(&mut self, attempt: &Attempt, next: &Arc<Attempt>) -> TurnEnd {
        let turn_end =
            self.line.releasing(attempt, Some(|_: &WaitingCall<_>| Arc::clone(next)), self.now);
        TurnEnd { is_answered: true, ..turn_end }
    }
}

fn waiter(number: u64, name: &'static str, is_fair: bool) -> WaitingCall<&'static str> {
    let (ttl, label) = (Ttl::DEFAULT, Default::default());
    WaitingCall { number, ttl, is_fair, is_once: false, identity: None, label, answer: name }
}

fn delivered(actions: &Actions<&'static str>) -> Option<&'static str> {
    actions.deliver.as_ref().map(|(name, _)| *name)
}

fn is_nothing(actions: &Actions<&'static str>) -> bool {
    let Actions { deliver, query, withdraw, release, refuse } = actions;
    let asks = query.is_some() || release.is_some() || !withdraw.is_empty();
    deliver.is_none() && refuse.is_none() && !asks
}

fn withdraws(actions: &Actions<&'static str>, attempts: &[&Arc<Attempt>]) -> bool {
    let others = actions.deliver.is_some() || actions.release.is_some() || actions.query.is_some();
    let same = |(one, other): (&Arc<Attempt>, &&Arc<Attempt>)| Arc::ptr_eq(one, other);
    let is_same_length = actions.withdraw.len() == attempts.len();
    !others && is_same_length && actions.withdraw.iter().zip(attempts).all(same)
}

fn releases(actions: &Actions<&'static str>, attempt: &Arc<Attempt>) -> bool {
    actions.release.as_ref().is_some_and(|released| Arc::ptr_eq(released, attempt))
        && actions.withdraw.is_empty()
        && actions.deliver.is_none()
}

fn gives_back(mut actions: Actions<&'static str>, attempt: &Arc<Attempt>) -> bool {
    let withdrawn = mem::take(&mut actions.withdraw);
    matches!(&*withdrawn, [one] if Arc::ptr_eq(one, attempt)) && releases(&actions, attempt)
}
