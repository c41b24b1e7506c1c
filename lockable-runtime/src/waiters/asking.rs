//! Asking for a line's turn, or for its place in the queue, and what the answers mean.

use std::iter;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{RECHECK_INTERVAL, Waiters, close};
use crate::backend::{Attempt, Enqueued, Fault, Listener};
use crate::types::clock::within;
use crate::types::error::{LockError, LockErrorKind};
use crate::types::key::LockKey;
use crate::worker::{Agent, InFlight};

/// After this long without an answer, waiters end with an error.
///
/// See "When does a call without a wait limit give up?" in DESIGN.md.
const GIVE_UP_AFTER: Duration = Duration::from_secs(30);

impl Waiters {
    /// Asks for this line's turn, or for its place in the queue.
    pub(super) async fn ask(self: Arc<Self>, in_flight: InFlight<Self>, key: LockKey) {
        let attempt = match self.question_of(&key) {
            Ok(Some(attempt)) => attempt,
            Ok(None) => return,
            Err(error) => return self.failed(&key, &error.into()),
        };
        if let Err(refused) = self.listens(&attempt).await {
            attempt.question_ends();
            return self.failed(&key, &refused);
        }
        let mut question = self.link.question(self.link.backend.enqueue(Arc::clone(&attempt)));
        self.answered(&attempt, question.answer().await);
        drop(in_flight);
        // A late answer still says what the question was granted, and nothing else does.
        if let Some(Ok(answer)) = question.late_answer(GIVE_UP_AFTER).await {
            self.answered(&attempt, Ok(answer));
        }
    }

    /// The attempt that a question for this line is about: the one in the queue, or else a new one.
    ///
    /// The question begins under the lock under which a turn does, so that no turn begins between the
    /// choice of the attempt and its count: the end of a turn sees every question that may land behind it.
    ///
    /// # Errors
    /// When the system gives no randomness.
    fn question_of(&self, key: &LockKey) -> Result<Option<Arc<Attempt>>, LockError> {
        let make = self.attempt_for(key)?;
        Ok(self.worklist.look(|agenda| {
            let line = agenda.get_mut(key)?;
            let attempt = line.entry_or(make)?;
            attempt.question_begins();
            Some(attempt)
        }))
    }

    /// Makes sure, before the first question, that grants are heard.
    ///
    /// A place that no message reaches is passed over, and asks again after [`RECHECK_INTERVAL`]: so only
    /// a refusal is an error here.
    async fn listens(&self, attempt: &Attempt) -> Result<(), Fault> {
        if attempt.sent_at().is_some() {
            return Ok(());
        }
        let backend = &self.link.backend;
        let Ok(origin) = self.origin.get() else { return Ok(()) };
        let listener = Weak::clone(&self.this) as Weak<dyn Listener>;
        let heard = within(|| backend.timer(RECHECK_INTERVAL), backend.listen(origin, listener));
        match heard.await {
            Some(Err(fault)) if fault.kind == LockErrorKind::Refused => Err(fault),
            _ => Ok(()),
        }
    }

    fn answered(self: &Arc<Self>, attempt: &Arc<Attempt>, answer: Result<Enqueued, Fault>) {
        if answer.is_ok() {
            attempt.question_ends();
        }
        match answer {
            Ok(Enqueued::Granted(grant)) => self.on_grant(grant),
            Ok(Enqueued::Queued { remaining }) => self.queued(attempt, remaining),
            Err(fault) => self.failed(&attempt.key, &fault),
        }
        self.withdraw_if_orphaned(attempt);
    }

    fn queued(self: &Arc<Self>, attempt: &Attempt, remaining: Option<Duration>) {
        let pause = remaining.unwrap_or(RECHECK_INTERVAL).min(RECHECK_INTERVAL);
        let next = self.link.backend.now().after(pause);
        self.change(|agenda| {
            let Some(line) = agenda.get_mut(&attempt.key) else { return };
            line.answered();
            if line.is_queued_as(attempt) {
                agenda.schedule(&attempt.key, next);
            }
        });
    }

    /// The line stays, and asks again, until the backend was unavailable for too long, or refuses.
    fn failed(self: &Arc<Self>, key: &LockKey, fault: &Fault) {
        let now = self.link.backend.now();
        let given_up = self.change(|agenda| {
            let line = agenda.get_mut(key)?;
            let since = line.failed(now, fault);
            let is_lasting = fault.kind != LockErrorKind::Unavailable;
            if !is_lasting && now.since(since) < GIVE_UP_AFTER {
                agenda.schedule(key, now.after(RECHECK_INTERVAL / 5));
                return None;
            }
            let waiting: Vec<_> = iter::from_fn(|| line.next()).collect();
            Some((waiting, close(agenda, key)))
        });
        let Some((waiting, unused)) = given_up else { return };
        self.withdraw_all(unused);
        for waiting in waiting {
            let error = fault.clone().about(key, &self.link.reporting);
            // A call that has gone needs no answer.
            drop(waiting.answer.send(Err(error)));
        }
    }

    /// After a request of the attempt: withdraws what it left in the backend if no call waits for that any
    /// more, because a withdrawal may have overtaken the request. The request may have overtaken the
    /// release of a turn likewise; that is answered first, or given up.
    pub(super) fn withdraw_if_orphaned(self: &Arc<Self>, attempt: &Arc<Attempt>) {
        let is_known = self
            .worklist
            .look(|agenda| agenda.get_mut(&attempt.key).is_some_and(|line| line.knows(attempt)));
        if is_known {
            return;
        }
        let (this, attempt) = (Arc::clone(self), Arc::clone(attempt));
        if !attempt.had_turn() {
            return this.withdraw(attempt);
        }
        let (limit, pending) = (this.link.command_deadline, this.releaser.pending());
        self.link.backend.detach(Box::pin(async move {
            let _until_the_end = pending;
            this.link.backend.timer(limit).await;
            this.withdraw(attempt);
        }));
    }
}
