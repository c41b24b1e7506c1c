//! Acquiring, in one try or by waiting for a turn; it leaves nothing behind however it ends.

use std::sync::Arc;
use std::time::Duration;

use crate::backend::{Acquisition, Attempt, Backend, Fault, Link, Outcome, Question};
use crate::hold::guard::LockGuard;
use crate::lease::renewal::{Registration, Renewals};
use crate::lease::{Lease, schedule};
use crate::releaser::{Known, Releaser};
use crate::request_id::RequestId;
use crate::telemetry::{self, Hold, Waiting};
use crate::types::clock::Moment;
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::options::{Terms, Ttl};
use crate::types::reporting::Reporting;
use crate::types::token::{FencingToken, Prefix};
use crate::waiters::{Claimed, Turn, Waiters};

use self::in_line::InLine;

mod in_line;

/// What acquiring takes: who keeps leases, and who releases what nobody waits for.
pub(crate) struct Acquirer {
    link: Arc<Link>,
    releaser: Arc<Releaser>,
    renewals: Renewals,
    waiters: Arc<Waiters>,
    /// What the owner tokens of single tries begin with.
    prefix: Prefix,
}

/// What is asked for.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) key: LockKey,
    pub(crate) terms: Terms,
    /// The request that the lock is for.
    pub(crate) identity: Option<RequestId>,
    /// Whether the caller's thread does nothing else while the lock is held.
    pub(crate) caller_blocks: bool,
}

impl Acquirer {
    /// # Errors
    /// When the system gives no randomness.
    pub(crate) fn new(link: Arc<Link>) -> Result<Arc<Self>, LockError> {
        let prefix = Prefix::draw(link.backend.now())?;
        let renewals = Renewals::new(Arc::clone(&link));
        let releaser = Releaser::new(Arc::clone(&link));
        let waiters = Waiters::new(Arc::clone(&link), Arc::clone(&releaser));
        Ok(Arc::new(Self { link, releaser, renewals, waiters, prefix }))
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.link.backend
    }

    /// # Errors
    /// When the locker was made before the process was forked.
    pub(crate) fn own(&self) -> Result<(), LockError> {
        self.link.usable_here()
    }

    /// The leases of this lock that are held, or that nobody has found lost yet.
    pub(crate) fn leases(&self, key: &LockKey) -> Vec<Lease> {
        self.renewals.leases(key)
    }

    /// How many calls wait for this lock.
    pub(crate) fn waiting(&self, key: &LockKey) -> usize {
        self.waiters.waiting(key)
    }

    pub(crate) fn reporting(&self) -> &Reporting {
        &self.link.reporting
    }

    /// Tries once; gives back what is wanted when another holder has the lock.
    ///
    /// # Cancel safety
    /// A request that was sent is waited for in the background, and what it grants is released.
    pub(crate) async fn try_acquire(
        &self,
        wanted: Wanted,
    ) -> Result<Result<LockGuard, Wanted>, LockError> {
        let Wanted { key, terms, identity, caller_blocks } = wanted;
        self.releaser.settled(&key).await;
        let owner = self.prefix.token(self.backend().now(), identity.as_ref());
        let owner = owner.map_err(|error| error.with_key(key.as_str()))?;
        let attempt = Arc::new(Attempt::owned(key, terms.ttl, owner));
        match Asked::new(self, &attempt).answer().await {
            Ok(Acquisition::Busy) => {
                let key = attempt.key.clone();
                Ok(Err(Wanted { key, terms, identity, caller_blocks }))
            }
            Ok(Acquisition::Granted { fencing_token, since }) => {
                let (attempt, now) = self.in_time(attempt, since)?;
                let grant = (since, terms.ttl);
                let lease = self.lease(attempt, fencing_token, grant, &terms);
                let registration = self.register(&lease, grant, caller_blocks);
                let hold = self.hold(now, Duration::ZERO, &terms);
                Ok(Ok(LockGuard::new(lease, Arc::clone(&self.releaser), registration, None, hold)))
            }
            Err(fault) => Err(fault.about(&attempt.key, self.reporting())),
        }
    }

    /// Whether a call joins those of this process that wait already, instead of trying by itself first.
    /// The first try ends by its own deadlines, also where the limit is shorter.
    pub(crate) fn joins(&self, wanted: &Wanted) -> bool {
        let joins = wanted.terms.wait.can_wait() && self.waiters.waiting(&wanted.key) > 0;
        if joins {
            self.link.count(&wanted.key, Outcome::Busy);
        }
        joins
    }

    /// Waits for the lock behind the calls of this process that wait already, as long as the terms say.
    ///
    /// # Cancel safety
    /// A waiter that is dropped leaves the queue; a lock that it is granted meanwhile is passed to the next
    /// waiter.
    pub(crate) async fn wait(
        &self,
        wanted: &Wanted,
        start: Moment,
        has_tried: bool,
    ) -> Result<LockGuard, LockError> {
        InLine::new(self, wanted, start, has_tried).wait().await
    }

    /// The guard of a turn, or why that is over already.
    async fn begin(
        &self,
        turn: Turn,
        wanted: &Wanted,
        waiting: &Waiting<'_>,
    ) -> Result<LockGuard, NoTurn> {
        let Wanted { terms, caller_blocks, .. } = wanted;
        let (turn, since, granted) = self.reliable(turn).await?;
        let grant = self.at_most(terms.ttl, since, granted);
        let attempt = turn.attempt().map(Arc::clone).ok_or(NoTurn::Busy)?;
        let fencing_token = turn.fencing_token().ok_or(NoTurn::Busy)?;
        let lease = self.lease(attempt, fencing_token, grant, terms);
        let registration = self.register(&lease, grant, *caller_blocks);
        let now = self.backend().now();
        let hold = self.hold(now, waiting.until(now), terms);
        telemetry::handed_off(turn.is_passed_on());
        Ok(LockGuard::new(
            lease,
            Arc::clone(&self.releaser),
            registration,
            Some(turn.guarded()),
            hold,
        ))
    }

    /// A lock that is held from now on, of which too long a use is told where nothing renews it.
    fn hold(&self, now: Moment, waited: Duration, terms: &Terms) -> Hold {
        let held_over = self.reporting().held_over.filter(|_| !terms.renew);
        Hold::new(now, waited, held_over)
    }

    /// The turn, from when on its grant counts, and for how long.
    ///
    /// One that was long on its way, or that counts from an answer of long ago, is claimed first: the
    /// body could have too little of it otherwise.
    async fn reliable(&self, turn: Turn) -> Result<(Turn, Moment, Ttl), NoTurn> {
        let (since, granted) = turn.grant().ok_or(NoTurn::Busy)?;
        let now = self.backend().now();
        if let Some(since) = since.filter(|since| now < schedule::due(*since, granted)) {
            return Ok((turn, since, granted));
        }
        let turn = match turn.claim().await {
            Claimed::Granted(turn) => turn,
            Claimed::Busy => return Err(NoTurn::Busy),
            Claimed::Fault(fault) => return Err(NoTurn::Fault(fault)),
        };
        match turn.grant() {
            Some((Some(since), granted))
                if self.backend().now() < since.after(granted.usable()) =>
            {
                Ok((turn, since, granted))
            }
            _ => {
                turn.lose();
                Err(NoTurn::TooLate)
            }
        }
    }

    /// The part of a grant that a call may use: another one of this process, which asked for longer, may
    /// have been the first here.
    fn at_most(&self, ttl: Ttl, since: Moment, granted: Ttl) -> (Moment, Ttl) {
        let now = self.backend().now();
        let is_longer = since.after(granted.usable()) > now.after(ttl.usable());
        if is_longer { (now, ttl) } else { (since, granted) }
    }

    fn lease(
        &self,
        attempt: Arc<Attempt>,
        fencing_token: FencingToken,
        grant: (Moment, Ttl),
        terms: &Terms,
    ) -> Lease {
        Lease::new(attempt, fencing_token, grant, terms, Arc::clone(&self.link))
    }

    fn register(&self, lease: &Lease, grant: (Moment, Ttl), caller_blocks: bool) -> Registration {
        self.renewals.register(lease, grant, &self.backend().home(caller_blocks))
    }

    /// An answer that came after the lease's own deadline is a failed acquisition; gives the time.
    fn in_time(
        &self,
        attempt: Arc<Attempt>,
        since: Moment,
    ) -> Result<(Arc<Attempt>, Moment), LockError> {
        let now = self.backend().now();
        if now < since.after(attempt.ttl.usable()) {
            return Ok((attempt, now));
        }
        let error = LockError::too_late(attempt.key.as_str());
        // Most likely it has expired already, and that is no news.
        self.releaser.defer(attempt, Known::Releasing);
        Err(error)
    }
}

/// Why a turn brought no guard.
enum NoTurn {
    /// Its grant has ended, and another holder has the lock.
    Busy,
    /// A whole lease was granted, and was over when the answer came.
    TooLate,
    /// The question whether it is still held had no answer.
    Fault(Fault),
}

/// A request and the duty to release what it may grant.
struct Asked<'a> {
    acquirer: &'a Acquirer,
    attempt: &'a Arc<Attempt>,
    question: Question<'a, Acquisition>,
}

impl<'a> Asked<'a> {
    fn new(acquirer: &'a Acquirer, attempt: &'a Arc<Attempt>) -> Self {
        let link = &acquirer.link;
        let question = link.question(link.try_acquire(Arc::clone(attempt)));
        Self { acquirer, attempt, question }
    }

    async fn answer(mut self) -> Result<Acquisition, Fault> {
        let answer = self.question.answer_once_sent(self.attempt).await;
        self.acquirer.link.count(&self.attempt.key, Outcome::from(&answer));
        let is_unsure = answer.as_ref().is_err_and(|fault| !fault.proves_absence);
        if is_unsure && self.question.is_answered() && self.may_hold() {
            self.acquirer.releaser.defer(Arc::clone(self.attempt), Known::Unknown);
        }
        answer
    }

    fn may_hold(&self) -> bool {
        self.attempt.sent_at().is_some()
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if let Some(reply) = self.question.take_reply()
            && self.may_hold()
        {
            self.acquirer.releaser.adopt(Arc::clone(self.attempt), reply);
        }
    }
}
