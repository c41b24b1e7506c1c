//! One try for a lock; it leaves nothing behind, however it ends.

use std::sync::Arc;
use std::time::Duration;

use super::busy::Busy;
use super::gate::Gate;
use super::warners::Warners;
use crate::core::acquire::inspect::inspect;
use crate::core::backend::{
    AcquireReply, Attempt, BackendContext, Fault, Grant, Outcome, Query, Renewed, Reserved,
    Transferred,
};
use crate::core::hold::guard::LockGuard;
use crate::core::lease::Lease;
use crate::core::local_permits::AllLocalPermits;
use crate::core::releaser::{Known, Releaser};
use crate::core::telemetry::{self, Hold};
use crate::core::types::error::{LockError, LockErrorKind};
use crate::core::types::key::LockKey;
use crate::core::types::line_key::LineKey;
use crate::core::types::options::Options;
use crate::core::types::owner::{Held, Origin, ReleasedBy};
use crate::core::types::permit::{LocalPermit, Permits};
use crate::core::types::ticket::Ticket;
use crate::core::types::token::Prefix;
use crate::core::waiters::{Entry, LastReply, Lines, Turn};

pub(crate) struct Acquirer {
    pub(crate) context: Arc<BackendContext>,
    pub(crate) gate: Gate,
    releaser: Arc<Releaser>,
    pub(super) waiters: Arc<Lines>,
    pub(super) warners: Warners,
    pub(super) local_permits: AllLocalPermits,
    prefix: Prefix,
}

pub(super) enum TryReply {
    Granted(LockGuard),
    /// Another holder has the lock. The entry is still that of a call that tries.
    Busy(Busy, Entry),
}

impl Acquirer {
    /// # Errors
    /// When the system gives no randomness.
    pub(crate) fn new(context: Arc<BackendContext>) -> Result<Arc<Self>, LockError> {
        let prefix = Prefix::draw(context.backend.now())?;
        let releaser = Releaser::new(Arc::clone(&context));
        let waiters = Lines::new(Arc::clone(&context), Arc::clone(&releaser), Origin::draw()?);
        let (gate, local_permits) = (Gate::open(), AllLocalPermits::default());
        let warners = Warners::default();
        Ok(Arc::new(Self { context, gate, releaser, waiters, warners, local_permits, prefix }))
    }

    pub(crate) fn leases(&self, key: &LockKey) -> Vec<Lease> {
        self.waiters.leases(key)
    }

    pub(crate) fn waiting(&self, key: &LockKey) -> usize {
        self.waiters.waiting(key)
    }

    /// Waits for the releases of this lock, or of all permits of this key, that are open in the background.
    pub(super) async fn settled(&self, key: &LockKey) {
        self.releaser.settled(key).await;
    }

    #[cfg(test)]
    pub(crate) fn trying(&self, key: &LockKey) -> usize {
        self.waiters.trying(key)
    }

    #[cfg(test)]
    pub(crate) fn open_work(&self) -> usize {
        self.releaser.open_work()
    }

    /// # Errors
    /// When a test has staged that this acquisition fails.
    pub(super) fn staged(&self, key: &LockKey) -> Result<(), LockError> {
        let Some(fault) = self.context.staged_fault(key) else { return Ok(()) };
        self.context.count(key, Outcome::Failed);
        Err(fault.about(key, &self.context.reporting))
    }

    /// Tries once.
    ///
    /// # Cancel safety
    /// A request that was sent is waited for in the background, and what it grants is released.
    pub(super) async fn try_once(
        &self,
        key: LockKey,
        local_permit: Option<&Arc<LocalPermit>>,
        options: &Options,
        mut entry: Entry,
    ) -> Result<TryReply, LockError> {
        self.staged(&key)?;
        self.settled(&key).await;
        let released_by = self.released_by(options);
        let now = self.context.backend.now();
        let owner = self.prefix.token(now, released_by, options.identity.as_ref());
        let owner = owner.map_err(|error| error.with_key(key.as_str()))?;
        let owner = if options.once.is_some() { owner.of_once() } else { owner };
        let attempt = match local_permit {
            None => Attempt::owned(key, options.ttl, owner),
            Some(local_permit) => Attempt::in_local_permit(local_permit, options.ttl, owner),
        };
        let attempt = Arc::new(attempt.labeled(options.label));
        match RunningTry::new(self, &attempt).answer().await {
            Ok(AcquireReply::Done) if options.once.is_some() => {
                entry.ends(LastReply::Busy);
                Err(LockError::done(attempt.key.as_str(), "", ""))
            }
            Ok(AcquireReply::Busy | AcquireReply::Done) => {
                let busy = self.busy(attempt.key.clone(), attempt.obstacle(), options).await;
                Ok(TryReply::Busy(busy, entry))
            }
            Ok(AcquireReply::Granted(grant)) => {
                let attempt = match grant.permit() {
                    None => attempt,
                    Some(permit) => {
                        entry.moves(permit);
                        attempt.with_permit(permit.clone())
                    }
                };
                self.granted(&grant, attempt, options, entry).map(TryReply::Granted)
            }
            Err(fault) => {
                entry.ends(LastReply::Fault(Box::new(fault.clone())));
                Err(fault.about(&attempt.key, &self.context.reporting))
            }
        }
    }

    /// The outcome of a call that is not granted. A call without `once` that finds a lock done is most likely one of an
    /// older version of the program, and logs until when that lasts.
    async fn busy(&self, key: LockKey, obstacle: Option<Arc<Held>>, options: &Options) -> Busy {
        let busy = Busy::new(key, obstacle, &self.context.reporting);
        if !busy.is_done() {
            return busy;
        }
        // Boxed, because hardly any call needs it.
        let now = Box::pin(inspect(&self.context, busy.key.clone())).await;
        let busy = busy.by(now.ok().flatten().map(Box::new));
        if busy.is_done() {
            let key = self.context.reporting.show(&busy.key).labeled(options.label);
            telemetry::found_done(key, &busy.words().unwrap_or_default());
        }
        busy
    }

    /// Takes over the lock of a ticket.
    ///
    /// # Cancel safety
    /// As [`try_once`](Self::try_once).
    pub(super) async fn redeem(
        &self,
        ticket: &Ticket,
        options: &Options,
    ) -> Result<LockGuard, LockError> {
        let key = ticket.key();
        self.gate.check(key)?;
        self.staged(key)?;
        let entry = self.waiters.enter_alone(&LineKey::Lock(key.clone()));
        let now = self.context.backend.now();
        let identity = options.identity.clone().or_else(|| ticket.request_id());
        let owner = self.prefix.token(now, ReleasedBy::Script, identity.as_ref());
        let owner = owner.map_err(|error| error.with_key(key.as_str()))?;
        let attempt = Attempt::owned(key.clone(), options.ttl, owner).labeled(options.label);
        let attempt = Arc::new(attempt);
        match RunningTry::of_ticket(self, ticket, &attempt).answer().await {
            Ok(AcquireReply::Granted(grant)) => self.granted(&grant, attempt, options, entry),
            Ok(AcquireReply::Busy | AcquireReply::Done) => {
                Err(LockError::lost(key.as_str(), REDEEMED)
                    .advise("try again later, because that holder may die")
                    .with_taken(true))
            }
            Err(fault) => Err(fault.about(key, &self.context.reporting)),
        }
    }

    /// Only the script can leave a lock taken.
    fn released_by(&self, options: &Options) -> ReleasedBy {
        let may_stay_taken = options.min_hold.is_some() || options.once.is_some();
        if may_stay_taken || options.permits != Permits::OneLock {
            return ReleasedBy::Script;
        }
        self.context.backend.released_by()
    }

    fn granted(
        &self,
        grant: &Grant,
        attempt: Arc<Attempt>,
        options: &Options,
        entry: Entry,
    ) -> Result<LockGuard, LockError> {
        if let Some(lease) =
            Lease::of(grant, Arc::clone(&attempt), options, Arc::clone(&self.context))
        {
            let hold = Hold::new(self.context.backend.now(), Duration::ZERO, options.renew);
            return Ok(self.guard(lease, options, entry, hold, None));
        }
        let error = LockError::too_late(attempt.key.as_str());
        // Most likely it has expired already, so the release need not report that.
        self.releaser.defer(attempt, Known::Releasing);
        Err(error)
    }

    pub(super) fn guard(
        &self,
        lease: Lease,
        options: &Options,
        mut entry: Entry,
        hold: Hold,
        turn: Option<Box<Turn>>,
    ) -> LockGuard {
        let renewal_runtime = || self.context.backend.renewal_runtime(options.caller_blocks);
        let due = lease.renews().then(|| (lease.first_due(), renewal_runtime()));
        entry.holds(&lease, due);
        LockGuard::new(lease, Arc::clone(&self.releaser), entry, turn, hold)
    }
}

const REDEEMED: &str = "the ticket was not redeemed: another holder has the lock; the ticket was redeemed before, as one \
                        that is delivered twice, or its time is over";

const OVER: &str = "the ticket was not redeemed, because its lock is free: the time of the ticket is over, it was redeemed \
                    before by a holder that is done or has died, or an operator released it";

const LOOK: &str = "acquire the lock by its key, and look whether the work is done";

struct RunningTry<'a> {
    acquirer: &'a Acquirer,
    attempt: &'a Arc<Attempt>,
    query: Query<'a, AcquireReply>,
}

impl<'a> RunningTry<'a> {
    fn new(acquirer: &'a Acquirer, attempt: &'a Arc<Attempt>) -> Self {
        let context = &acquirer.context;
        let query = context.query(attempt.slot, context.backend.try_acquire(Arc::clone(attempt)));
        Self { acquirer, attempt, query }
    }

    fn of_ticket(acquirer: &'a Acquirer, ticket: &Ticket, attempt: &'a Arc<Attempt>) -> Self {
        let context = &acquirer.context;
        let fencing_token = ticket.fencing_token();
        let of_ticket = Attempt::owned(ticket.key().clone(), attempt.ttl, ticket.owner());
        let counted = context.backend.count_fence(Arc::clone(attempt));
        let transferred = context.backend.transfer(Arc::new(of_ticket), Arc::clone(attempt));
        let redeeming = Arc::clone(attempt);
        let reply = Box::pin(async move {
            let Transferred { found, epoch } = transferred.await?;
            match found {
                Renewed::Held => {
                    // No holder was given a token above that: it would have the resource refuse all later ones.
                    let counted = counted.await?;
                    let fence = Reserved::single(counted.min(fencing_token.into()));
                    let sent = redeeming.sent_at().unwrap_or_default();
                    let grant = Grant::answered(&redeeming, fence, sent).of_epoch(epoch);
                    Ok(AcquireReply::Granted(grant))
                }
                Renewed::Taken => Ok(AcquireReply::Busy),
                Renewed::Absent => {
                    let fault = Fault::new(LockErrorKind::Lost, OVER).advise(LOOK);
                    Err(Fault { proves_absence: true, ..fault })
                }
            }
        });
        let query = context.query(attempt.slot, reply);
        Self { acquirer, attempt, query }
    }

    async fn answer(mut self) -> Result<AcquireReply, Fault> {
        let answer = self.query.answer_once_sent(self.attempt).await;
        self.acquirer.context.count(&self.attempt.key, Outcome::from(&answer));
        let is_unsure = answer.as_ref().is_err_and(|fault| !fault.proves_absence);
        if is_unsure && self.query.reply.is_none() && self.may_hold() {
            self.acquirer.releaser.defer(Arc::clone(self.attempt), Known::Unknown);
        }
        answer
    }

    fn may_hold(&self) -> bool {
        self.attempt.sent_at().is_some()
    }
}

impl Drop for RunningTry<'_> {
    fn drop(&mut self) {
        if let Some(reply) = self.query.reply.take()
            && self.may_hold()
        {
            self.acquirer.releaser.adopt(Arc::clone(self.attempt), reply);
        }
    }
}
