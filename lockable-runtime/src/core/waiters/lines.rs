//! The lines of one locker: performs what they decide, and brings them the answers and the wake-ups.

use std::sync::{Arc, Weak};

use tokio::sync::oneshot;

use super::line::{Actions, GIVE_UP_AFTER, Granted, Line, WaitingCall};
use super::table::Table;
use crate::core::backend::{
    Attempt, BackendContext, Danger, Enqueued, Events, Fault, Revocation, Verb, WakeUp,
};
use crate::core::lease::Lease;
use crate::core::lease::renewal::Renewals;
use crate::core::lease::schedule::Cause;
use crate::core::process::clock::Moment;
use crate::core::releaser::{Known, Releaser};
use crate::core::telemetry;
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;
use crate::core::types::line_key::LineKey;
use crate::core::types::owner::{NumberOfWaiter, Origin, OwnerToken};
use crate::core::types::permit::PermitsKey;
use crate::core::types::slot::Slot;
use crate::core::worker::{Agent, InFlight, Worklist};

pub(crate) struct Lines {
    pub(super) context: Arc<BackendContext>,
    pub(super) table: Table,
    pub(super) renewals: Renewals,
    releaser: Arc<Releaser>,
    worklist: Worklist<LineKey, Line<Answer>>,
    origin: Origin,
    this: Weak<Self>,
}

pub(super) type Answer = oneshot::Sender<Result<Granted, LockError>>;

impl Lines {
    pub(crate) fn new(
        context: Arc<BackendContext>,
        releaser: Arc<Releaser>,
        origin: Origin,
    ) -> Arc<Self> {
        let lines = Arc::new_cyclic(|this| Self {
            table: Table::default(),
            renewals: Renewals::new(Arc::clone(&context)),
            worklist: Worklist::new(&context),
            context,
            releaser,
            origin,
            this: Weak::clone(this),
        });
        let events = Weak::clone(&lines.this) as Weak<dyn Events>;
        lines.context.backend.report_to(origin, events);
        lines
    }

    /// Looks at a line; `None` if no call of this process waits for the lock, or has its turn.
    pub(super) fn look<R>(
        &self,
        key: &LineKey,
        look: impl FnOnce(&Line<Answer>) -> R,
    ) -> Option<R> {
        self.worklist.look(|agenda| agenda.get_mut(key).map(|line| look(line)))
    }

    /// Brings an event to the line of this key, or to a new one. A line that is over then is dropped.
    pub(super) fn on<R>(
        self: &Arc<Self>,
        key: &LineKey,
        event: impl FnOnce(&mut Line<Answer>, Moment) -> R,
    ) -> R {
        let now = self.context.backend.now();
        self.change(|agenda| {
            let mut new = Line::default();
            let line = agenda.get_mut(key).unwrap_or(&mut new);
            let result = event(line, now);
            let due = line.due.take();
            #[cfg(lockable_internals)]
            let due = due.map(|due| self.context.queries_at(due, now));
            match (line.is_over(), due) {
                (true, _) => drop(agenda.remove(key)),
                (false, due) if !new.is_over() => drop(agenda.insert(key.clone(), new, due)),
                (false, due) => due.into_iter().for_each(|due| agenda.schedule(key, due)),
            }
            result
        })
    }

    pub(super) fn act(
        self: &Arc<Self>,
        key: &LineKey,
        event: impl FnOnce(&mut Line<Answer>, Moment) -> Actions<Answer>,
    ) {
        let actions = self.on(key, event);
        self.perform_all(key, actions);
    }

    pub(super) fn perform_all(self: &Arc<Self>, key: &LineKey, actions: Actions<Answer>) {
        if let Some((answer, granted)) = actions.deliver {
            // A call that has gone is about to leave the line, which returns its turn.
            drop(answer.send(Ok(granted)));
        }
        if let Some(attempt) = actions.release {
            self.releaser.defer(attempt, Known::Releasing);
        }
        actions.withdraw.into_iter().for_each(|attempt| self.withdraw(attempt));
        if let Some(attempt) = actions.query {
            self.spawn(Arc::clone(self).query(attempt, None));
        }
        if let Some((fault, waiters)) = actions.refuse {
            for waiter in waiters {
                drop(
                    waiter
                        .answer
                        .send(Err(fault.clone().about(key.key(), &self.context.reporting))),
                );
            }
        }
    }

    fn broken(self: &Arc<Self>, fault: &Fault, concerns: &dyn Fn(Slot) -> bool) {
        self.change(|agenda| {
            let lines = agenda.items_mut().filter(|line| line.slot().is_none_or(concerns));
            lines.for_each(|line| line.broken(fault));
        });
    }

    /// Removes an attempt from the queue, and as a holder, because no call waits for it any more.
    fn withdraw(self: &Arc<Self>, attempt: Arc<Attempt>) {
        // A query of this attempt that is about to be sent sees the mark, and is not sent.
        attempt.mark_withdrawn();
        if attempt.sent_at().is_none() {
            return;
        }
        let this = Arc::clone(self);
        let pending = self.releaser.pending();
        self.context.backend.detach(Box::pin(async move {
            let _until_the_end = pending;
            let left = this
                .context
                .request(attempt.slot, this.context.backend.leave(Arc::clone(&attempt)));
            if left.await.is_err() {
                this.releaser.defer(attempt, Known::Unknown);
            }
        }));
    }

    pub(crate) fn leases(&self, key: &LockKey) -> Vec<Lease> {
        self.table.leases(key)
    }

    fn check_all(&self, concerns: &dyn Fn(Slot) -> bool, cause: Cause) {
        let mut leases = self.table.all();
        leases.retain(|(_, lease, _)| concerns(lease.attempt().slot));
        if leases.is_empty() {
            return;
        }
        let renewal_runtime = self.context.backend.renewal_runtime(false);
        let due = self.renewals.check_all(&renewal_runtime, concerns, cause);
        leases.retain(|(_, _, is_scheduled)| !is_scheduled);
        // The table has no order. A check has one, so that a simulation can repeat it.
        leases.sort_unstable_by(|(at, one, _), (other_at, other, _)| {
            one.key().cmp(other.key()).then(at.number.cmp(&other_at.number))
        });
        for (at, lease, _) in leases {
            let schedule = self.renewals.schedule(&lease, due, &renewal_runtime);
            // If its release has begun meanwhile, it is taken off the agenda again here.
            drop(self.table.change(at, |entries| entries.attach(at.number, schedule)));
        }
    }

    /// The line that waits as this attempt: for the name of a permit, that of a local permit.
    fn line_of(&self, key: &LockKey, owner: &OwnerToken) -> LineKey {
        let waits = |line: &Line<Answer>| line.queued_owner() == Some(owner);
        let local_permit = PermitsKey::of_permit(key)
            .and_then(|_| self.worklist.look(|agenda| agenda.key_of(waits).cloned()));
        local_permit.unwrap_or_else(|| LineKey::Lock(key.clone()))
    }

    /// Makes the next attempt, if one is needed.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(super) fn attempt_for(
        &self,
        line_key: &LineKey,
    ) -> Result<impl FnOnce(&WaitingCall<Answer>) -> Arc<Attempt>, LockError> {
        let origin = self.origin;
        let number = NumberOfWaiter::draw()?;
        let line_key = line_key.clone();
        Ok(move |first: &WaitingCall<Answer>| {
            let owner = OwnerToken::at(origin, number, first.identity.as_ref());
            let owner = if first.is_once { owner.of_once() } else { owner };
            let attempt = match &line_key {
                LineKey::Lock(key) => Attempt::owned(key.clone(), first.ttl, owner),
                LineKey::LocalPermit(local_permit) => {
                    Attempt::in_local_permit(local_permit, first.ttl, owner)
                }
            };
            Arc::new(attempt.labeled(first.label))
        })
    }

    /// Sends a query: it acquires the lock for the attempt, or joins the queue. A late answer counts as well.
    async fn query(self: Arc<Self>, attempt: Arc<Attempt>, in_flight: Option<InFlight<Self>>) {
        let mut open = Open { lines: &self, attempt: &attempt, is_answered: false };
        let enqueued = self.context.backend.enqueue(Arc::clone(&attempt));
        let mut query = self.context.query(attempt.slot, enqueued);
        match query.answer_once_sent(&attempt).await {
            Ok(answer) => return open.answered(&answer),
            Err(fault) => open.failed(&fault),
        }
        drop(in_flight);
        // A late answer still says what the query was granted, and nothing else does.
        if let Some(Ok(answer)) = query.late_answer(GIVE_UP_AFTER).await {
            open.answered(&answer);
        }
    }
}

/// A query under way; its line is notified when this is dropped without an answer.
struct Open<'a> {
    lines: &'a Arc<Lines>,
    attempt: &'a Arc<Attempt>,
    is_answered: bool,
}

impl Open<'_> {
    fn failed(&self, fault: &Fault) {
        let attempt = self.attempt;
        self.lines.act(&attempt.line(), |line, now| line.failed(Some(attempt), fault, now));
    }

    fn answered(&mut self, answer: &Enqueued) {
        self.is_answered = true;
        let attempt = self.attempt;
        self.lines.act(&attempt.line(), |line, now| line.answered(attempt, answer, now));
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            let attempt = self.attempt;
            self.lines.on(&attempt.line(), |line, _| line.query_ends(attempt, false));
        }
    }
}

impl Events for Lines {
    /// Anyone who may publish can send one, so it does nothing but make its line query.
    fn on_wake_up(&self, WakeUp { key, owner }: WakeUp) {
        if let Some(this) = self.this.upgrade() {
            this.act(&this.line_of(&key, &owner), |line, _| line.woken(&owner));
        }
    }

    fn on_broken(&self, fault: &Fault, concerns: &dyn Fn(Slot) -> bool) {
        if let Some(this) = self.this.upgrade() {
            this.broken(fault, concerns);
        }
    }

    fn on_resubscribed(&self, concerns: &dyn Fn(Slot) -> bool) {
        let Some(this) = self.this.upgrade() else { return };
        let now = this.context.backend.now();
        let waits_there = |line: &mut Line<Answer>| {
            let waits_there = line.slot().is_none_or(concerns);
            waits_there.then(|| line.queries_again()).is_some()
        };
        this.change(|agenda| agenda.schedule_where(now, waits_there));
    }

    fn on_unheard(&self, fault: &Fault) {
        telemetry::unnotified(&fault.clone().into_error());
    }

    fn on_endangered(&self, danger: &Danger<'_>) {
        telemetry::endangered(danger);
    }

    fn on_ending(&self, certificate: &str) {
        telemetry::certificate_ends(certificate);
    }

    fn on_connected(&self, concerns: &dyn Fn(Slot) -> bool) {
        self.check_all(concerns, Cause::Connected);
    }

    fn on_changed(&self, key: &str) {
        for look in self.table.lookers(key, self.context.backend.now()) {
            look();
        }
    }

    fn on_flushed(&self, concerns: &dyn Fn(Slot) -> bool) {
        self.check_all(concerns, Cause::Flushed);
    }

    fn on_untracked(&self, concerns: &dyn Fn(Slot) -> bool) {
        self.renewals.look_again(&self.context.backend.renewal_runtime(false), concerns);
    }

    /// It is for the call that has the lock now, also if others of its process had it before under the same owner
    /// token: for the server and for operators that is one hold.
    fn on_revocation(&self, revocation: &Revocation) {
        if self.context.is_inherited() {
            return;
        }
        let Revocation { verb, owner, key, reason } = revocation;
        for lease in self.leases(key) {
            if lease.attempt().owner.as_ref() != owner {
                continue;
            }
            match verb {
                Verb::Revoke => lease.revoke(reason),
                Verb::Forced => lease.force(reason),
            }
        }
    }
}

impl Agent for Lines {
    type Key = LineKey;
    type Item = Line<Answer>;

    fn worklist(&self) -> &Worklist<LineKey, Line<Answer>> {
        &self.worklist
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.context.backend.renewal_runtime(false).spawn(task));
    }

    fn perform(self: &Arc<Self>, due: Vec<LineKey>) {
        for key in due {
            match self.attempt_for(&key) {
                Ok(make) => {
                    let Some(attempt) = self.on(&key, |line, _| line.came_due(make)) else {
                        continue;
                    };
                    self.spawn(Arc::clone(self).query(attempt, Some(InFlight::begin(self))));
                }
                Err(error) => {
                    let fault = error.into();
                    self.act(&key, |line, now| line.failed(None, &fault, now));
                }
            }
        }
    }
}
