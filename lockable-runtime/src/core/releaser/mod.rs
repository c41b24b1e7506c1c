//! Releases that no caller waits for: of dropped guards, and of acquisitions that were given up before their answer
//! came.
//!
//! See "Who releases the lock of a dropped guard?" in DESIGN.md.

use std::pin::pin;
use std::sync::{Arc, MutexGuard, Weak};

use crate::core::backend::{AcquireReply, Attempt, BackendContext, Fault, Release, Reply};
use crate::core::labels::label::Label;
use crate::core::local_permits::Occupied;
use crate::core::process::PerProcess;
use crate::core::process::clock::{Moment, within};
use crate::core::process::mutex::Mutex;
use crate::core::telemetry;
use crate::core::types::key::LockKey;
use crate::core::types::owner::OwnerToken;
use crate::core::worker::{Agent, InFlight, Worklist};

use self::backlog::{Backlog, Untried};
use self::pending_release::{Next, PendingRelease};

pub(crate) use self::backlog::Pending;
pub(crate) use self::pending_release::Known;
pub use self::shutdown::shutdown;

mod backlog;
mod pending_release;
mod shutdown;

/// The most releases that may wait, about 32 MiB of them. Of more than that, while a server is down, each lock ends
/// with its lease.
const LIMIT: usize = 65_536;

const BACKLOG: &str = "lockable.release.backlog";

/// Retries deferred releases in the background, each until it is done or its lease would have ended.
pub(crate) struct Releaser {
    context: Arc<BackendContext>,
    backlog: Arc<Backlog>,
    /// By owner token, so that a release that is deferred twice is one.
    worklist: Worklist<OwnerToken, Deferred>,
}

impl Releaser {
    pub(crate) fn new(context: Arc<BackendContext>) -> Arc<Self> {
        let backlog = Backlog::new();
        let worklist = Worklist::new(&context);
        let releaser = Arc::new(Self { context, backlog, worklist });
        let mut all = Self::all();
        all.retain(|releaser| releaser.strong_count() > 0);
        all.push(Arc::downgrade(&releaser));
        releaser
    }

    fn all() -> MutexGuard<'static, Vec<Weak<Self>>> {
        static ALL: PerProcess<Mutex<Vec<Weak<Releaser>>>> = PerProcess::new();
        ALL.get().lock()
    }

    /// Waits until every earlier deferred release of this key has been tried once, at most one command deadline.
    ///
    /// Without this, a call right after a dropped guard would find the lock busy with itself.
    pub(crate) async fn settled(&self, key: &LockKey) {
        if self.backlog.open() == 0 {
            return;
        }
        let timer = || self.context.backend.timer(self.context.command_deadline);
        // Boxed, because every call carries the space for this and hardly one needs it.
        let _in_time: Option<()> = Box::pin(within(timer, self.backlog.tried(key))).await;
    }

    /// Releases the attempt without a caller that waits for it. Never blocks, never fails.
    pub(crate) fn defer(self: &Arc<Self>, attempt: Arc<Attempt>, known: Known) {
        self.defer_in(attempt, known, None);
    }

    /// As [`defer`](Self::defer), for a permit: frees the local permit once the release was tried.
    pub(crate) fn defer_in(
        self: &Arc<Self>,
        attempt: Arc<Attempt>,
        known: Known,
        local_permit: Option<Box<Occupied>>,
    ) {
        let now = self.context.backend.now();
        self.accept(attempt, known, local_permit, Some(now));
    }

    /// Waits for the answer that the caller gave up, and releases what it grants.
    ///
    /// See "What happens to an acquisition whose caller was cancelled?" in DESIGN.md.
    pub(crate) fn adopt(self: &Arc<Self>, attempt: Arc<Attempt>, reply: Reply<AcquireReply>) {
        if !self.accept(Arc::clone(&attempt), Known::Unknown, None, None) {
            return;
        }
        let this = Arc::clone(self);
        self.context.backend.detach(Box::pin(async move {
            let limit = this.context.command_deadline;
            let known = match this.context.query(attempt.slot, reply).late_answer(limit).await {
                Some(Ok(AcquireReply::Granted(_))) => Some(Known::Granted),
                Some(Err(fault)) if !fault.proves_absence => Some(Known::Unknown),
                Some(Ok(AcquireReply::Busy | AcquireReply::Done) | Err(_)) => None,
                // The connection hangs; what it may still bring is released over another one.
                None => Some(Known::Unknown),
            };
            this.learn(&attempt, known);
        }));
    }

    /// Releases the first of these, or the second, which it may have become without an answer.
    ///
    /// Once the first is released or over, nothing can give the lock to the second any more. So the first is tried
    /// first, and what is found of the second then is final.
    pub(crate) fn defer_either(
        self: &Arc<Self>,
        first: Arc<Attempt>,
        second: Arc<Attempt>,
        local_permit: Option<Box<Occupied>>,
    ) {
        if !self.accept(Arc::clone(&second), Known::Unknown, local_permit, None) {
            return;
        }
        let this = Arc::clone(self);
        self.context.backend.detach(Box::pin(async move {
            let (backend, limit) = (&this.context.backend, this.context.command_deadline);
            let end = first.lapses_at().unwrap_or_default().after(limit);
            while try_release(&this.context, &first).await.is_err() && backend.now() < end {
                backend.timer(limit).await;
            }
            this.learn(&second, Some(Known::Releasing));
        }));
    }

    pub(crate) fn pending(&self) -> Pending {
        Pending::begin(&self.backlog)
    }

    #[cfg(test)]
    pub(crate) fn open_work(&self) -> usize {
        self.backlog.open()
    }

    fn accept(
        self: &Arc<Self>,
        attempt: Arc<Attempt>,
        known: Known,
        local_permit: Option<Box<Occupied>>,
        due: Option<Moment>,
    ) -> bool {
        if self.context.is_inherited() {
            return false;
        }
        let token = attempt.owner.clone();
        let shown = Arc::clone(&attempt);
        // Counted before a task can end it; dropped outside of the agenda's lock if it is not needed.
        let mut new = Some(Deferred::new(&self.backlog, attempt, known, local_permit));
        let is_accepted = self.change(|agenda| {
            let is_full = agenda.len() >= LIMIT;
            if let Some(deferred) = agenda.get_mut(&token) {
                deferred.release.merge(known);
            } else if is_full {
                return false;
            } else if let Some(new) = new.take() {
                drop(agenda.insert(token, new, due));
            }
            true
        });
        if !is_accepted {
            let key = shown.shown(&self.context.reporting);
            let fault = Fault::unavailable("too many releases wait already");
            telemetry::release_abandoned(key, fault);
        }
        is_accepted
    }

    /// The awaited answer came: the attempt has to be released, or holds nothing.
    fn learn(self: &Arc<Self>, attempt: &Attempt, known: Option<Known>) {
        let now = self.context.backend.now();
        let _done: Option<Deferred> = self.change(|agenda| {
            let Some(known) = known else { return agenda.remove(&attempt.owner) };
            agenda.get_mut(&attempt.owner)?.release.known = known;
            agenda.schedule(&attempt.owner, now);
            None
        });
    }

    async fn release(self: Arc<Self>, in_flight: InFlight<Self>, attempt: Arc<Attempt>) {
        let outcome = try_release(&self.context, &attempt).await;
        let now = self.context.backend.now();
        // After this the backend cannot know the attempt any more, even if its last request was late.
        let end = attempt.lapses_at().unwrap_or(now).after(self.context.command_deadline);
        let next = self.change(|agenda| {
            let deferred = agenda.get_mut(&attempt.owner)?;
            // Who has waited for this finds the local permit free.
            let tried = (deferred.local_permit.take(), deferred.untried.take());
            let next = deferred.release.answered(&outcome, now, end);
            let done = match next {
                Next::Again(moment) => {
                    agenda.schedule(&attempt.owner, moment);
                    None
                }
                Next::Done | Next::WasGone | Next::Abandoned => agenda.remove(&attempt.owner),
            };
            // The counts fall when these are dropped, outside of the agenda's lock.
            Some((next, tried, done))
        });
        drop(in_flight);
        if let Some((next, ..)) = &next {
            self.report(&attempt, next, outcome);
        }
    }

    fn report(&self, attempt: &Attempt, next: &Next, outcome: Result<Release, Fault>) {
        let key = attempt.shown(&self.context.reporting);
        match (next, outcome) {
            (Next::WasGone, Ok(found)) => {
                telemetry::released_too_late(key, found == Release::Taken);
            }
            (Next::Abandoned, Err(fault)) => telemetry::release_abandoned(key, fault),
            _ => {}
        }
    }
}

pub(crate) struct Deferred {
    release: PendingRelease,
    untried: Option<Untried>,
    local_permit: Option<Box<Occupied>>,
    pending: Pending,
    label: &'static Label,
}

impl Deferred {
    fn new(
        backlog: &Arc<Backlog>,
        attempt: Arc<Attempt>,
        known: Known,
        local_permit: Option<Box<Occupied>>,
    ) -> Self {
        let label = attempt.label();
        telemetry::change(label, BACKLOG, 1.0);
        let untried = Some(Untried::begin(backlog, &attempt));
        let pending = Pending::begin(backlog);
        Self { release: PendingRelease::new(attempt, known), untried, local_permit, pending, label }
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        if self.pending.is_own() {
            telemetry::change(self.label, BACKLOG, -1.0);
        }
    }
}

impl Agent for Releaser {
    type Key = OwnerToken;
    type Item = Deferred;

    fn worklist(&self) -> &Worklist<OwnerToken, Deferred> {
        &self.worklist
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.context.backend.detach(Box::pin(task));
    }

    fn perform(self: &Arc<Self>, due: Vec<OwnerToken>) {
        for token in due {
            let attempt = self
                .worklist
                .look(|agenda| Some(Arc::clone(&agenda.get_mut(&token)?.release.attempt)));
            if let Some(attempt) = attempt {
                self.spawn(Arc::clone(self).release(InFlight::begin(self), attempt));
            }
        }
    }
}

pub(crate) async fn try_release(
    context: &BackendContext,
    attempt: &Arc<Attempt>,
) -> Result<Release, Fault> {
    let answer = pin!(context.request(attempt.slot, context.backend.release(Arc::clone(attempt))));
    let found = telemetry::releasing(attempt.shown(&context.reporting), answer).await?;
    attempt.min_hold.end();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::task::{Context, Waker};

    use super::*;
    use crate::core::telemetry::tests::logged;
    use crate::core::types::options::Ttl;

    fn releaser() -> Arc<Releaser> {
        Releaser::new(Arc::new(BackendContext::in_memory()))
    }

    fn attempt() -> Arc<Attempt> {
        Arc::new(Attempt::drawn(LockKey::from_static("mail:ada"), Ttl::DEFAULT))
    }

    fn waiting(releaser: &Releaser) -> usize {
        releaser.worklist.look(|agenda| agenda.len())
    }

    #[test]
    fn a_release_that_is_deferred_twice_is_one() {
        let (releaser, attempt) = (releaser(), attempt());
        releaser.adopt(Arc::clone(&attempt), Box::pin(pending()));
        releaser.defer(Arc::clone(&attempt), Known::Granted);
        assert_eq!((waiting(&releaser), releaser.backlog.open()), (1, 1));
        releaser.learn(&attempt, None);
        assert_eq!((waiting(&releaser), releaser.backlog.open()), (0, 0));
        let tried = pin!(releaser.backlog.tried(&attempt.key));
        assert!(tried.poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }

    #[tokio::test]
    async fn an_answered_release_ends_the_minimum_hold() {
        let (context, attempt) = (BackendContext::in_memory(), attempt());
        attempt.min_hold.set_end(context.backend.now().after(Ttl::DEFAULT.duration()));
        try_release(&context, &attempt).await.unwrap();
        assert!(!attempt.min_hold.is_set(), "a late grant of it would be left taken");
    }

    #[test]
    fn excess_releases_are_left_to_their_leases() {
        let mut context = BackendContext::in_memory();
        context.reporting.redacts_keys = true;
        let releaser = Releaser::new(Arc::new(context));
        for _ in 0..LIMIT {
            assert!(releaser.accept(attempt(), Known::Unknown, None, None));
        }
        let in_excess = attempt();
        let text = logged(|| {
            assert!(!releaser.accept(Arc::clone(&in_excess), Known::Unknown, None, None));
        });
        assert!(text.contains("redacted:") && !text.contains("mail:ada"), "{text}");
        assert_eq!((waiting(&releaser), releaser.backlog.open()), (LIMIT, LIMIT));
    }
}
