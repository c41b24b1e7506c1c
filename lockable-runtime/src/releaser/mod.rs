//! Releases that nobody waits for: of guards that were dropped, and of acquisitions that were
//! given up before their answer came.
//!
//! See "Who releases when no one can wait?" in DESIGN.md.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::backend::{Acquisition, Attempt, Fault, Link, Release, Reply};
use crate::background::exit::{self, Work};
use crate::telemetry;
use crate::types::clock::{Moment, within};
use crate::types::key::LockKey;
use crate::types::token::OwnerToken;
use crate::worker::agenda::{Agenda, trim};
use crate::worker::{Agent, Worklist, attend};

use self::duty::{Duty, Next};

pub(crate) use self::duty::Known;
pub use self::shutdown::shutdown;

mod duty;
mod shutdown;

/// So many releases may wait at the same time, about 32 MiB of them. Of more than that, while a
/// server is down, each lock ends with its lease.
const LIMIT: usize = 65_536;

/// So many releases are asked for at the same time.
const MAX_IN_FLIGHT: usize = 256;

/// Releases in the background what was handed over, until it is done or the lease would have ended.
pub(crate) struct Releaser {
    link: Arc<Link>,
    /// How many releases, and other [pending](Pending) work, wait; spares the locks while there are
    /// none, which is nearly always.
    open: AtomicUsize,
    /// The same for the whole process, whose end gives it a moment.
    work: &'static Work,
    /// By owner token, so that a release that is handed over twice is one.
    worklist: Worklist<OwnerToken, Duty>,
    in_flight: AtomicUsize,
    /// How many releases of a key have not been tried yet: a new acquisition goes behind them.
    untried: Mutex<HashMap<LockKey, usize>>,
    /// Told whenever a release was tried, or ended.
    changed: Notify,
}

impl Releaser {
    pub(crate) fn new(link: Arc<Link>) -> Arc<Self> {
        exit::watch_this_thread();
        let releaser = Arc::new(Self {
            link,
            open: AtomicUsize::new(0),
            work: Work::of_this_process(),
            worklist: Worklist::default(),
            in_flight: AtomicUsize::new(0),
            untried: Mutex::default(),
            changed: Notify::new(),
        });
        shutdown::register(&releaser);
        releaser
    }

    /// Waits until every earlier hand-over of this key has been tried once, at most one command deadline.
    ///
    /// Without this, a call right after a dropped guard would find the lock busy with itself.
    pub(crate) async fn settled(&self, key: &LockKey) {
        if self.open.load(Ordering::Acquire) == 0 {
            return;
        }
        let timer = || self.link.backend.timer(self.link.command_deadline);
        let settled = self.wait_until(|| !self.untried().contains_key(key));
        // Boxed, because every call carries the room for this and hardly one needs it.
        let _in_time: Option<()> = Box::pin(within(timer, settled)).await;
    }

    /// Releases the attempt without anybody waiting for it. Never blocks, never fails.
    pub(crate) fn defer(self: &Arc<Self>, attempt: Arc<Attempt>, known: Known) {
        self.accept(attempt, known, Some(self.link.backend.now()));
    }

    /// Keeps waiting for the answer that the caller gave up, and releases what it grants.
    ///
    /// See "What happens to a request whose caller is gone?" in DESIGN.md.
    pub(crate) fn adopt(self: &Arc<Self>, attempt: Arc<Attempt>, reply: Reply<Acquisition>) {
        if self.accept(Arc::clone(&attempt), Known::Unknown, None) {
            self.link.backend.detach(Box::pin(release_late_grant(
                Arc::clone(self),
                attempt,
                reply,
            )));
        }
    }

    /// Lets [`shutdown`] wait until this is dropped.
    pub(crate) fn pending(self: &Arc<Self>) -> Pending {
        self.begin();
        Pending(Arc::clone(self))
    }

    /// Takes a release over, unless there are too many of them.
    fn accept(self: &Arc<Self>, attempt: Arc<Attempt>, known: Known, due: Option<Moment>) -> bool {
        if self.link.is_inherited() {
            return false;
        }
        let token = attempt.owner.clone();
        let key = attempt.key.clone();
        // Counted before anybody can end it.
        *self.untried().entry(key.clone()).or_default() += 1;
        self.begin();
        telemetry::backlog_grows();
        let outcome = self.change(|agenda| {
            let is_full = agenda.len() >= LIMIT;
            match agenda.get_mut(&token) {
                Some(duty) => {
                    duty.merge(known);
                    Accepted::Merged
                }
                None if is_full => Accepted::TooMany,
                None => {
                    drop(agenda.insert(token, Duty::new(attempt, known), due));
                    Accepted::New
                }
            }
        });
        if outcome != Accepted::New {
            self.mark_tried(&key);
            self.mark_ended();
        }
        if outcome == Accepted::TooMany {
            telemetry::release_abandoned(
                self.link.reporting.show(&key),
                "too many releases wait already",
            );
        }
        outcome != Accepted::TooMany
    }

    /// An answer came that was waited for: the attempt has to be released.
    fn start(self: &Arc<Self>, attempt: &Attempt, known: Known) {
        let now = self.link.backend.now();
        self.change(|agenda| {
            if let Some(duty) = agenda.get_mut(&attempt.owner) {
                duty.learn(known);
                agenda.schedule(&attempt.owner, now);
            }
        });
    }

    /// An answer came that was waited for: the attempt holds nothing.
    fn forget(self: &Arc<Self>, attempt: &Attempt) {
        if self.change(|agenda| agenda.remove(&attempt.owner)).is_some() {
            self.mark_tried(&attempt.key);
            self.mark_ended();
        }
    }

    fn change<R>(self: &Arc<Self>, change: impl FnOnce(&mut Agenda<OwnerToken, Duty>) -> R) -> R {
        let (result, starts) = self.worklist.change(change);
        if starts {
            self.link.backend.detach(Box::pin(attend(Arc::clone(self))));
        }
        result
    }

    /// One try, and what follows from it.
    async fn release(self: Arc<Self>, attempt: Arc<Attempt>) {
        let outcome = try_release(&self.link, &attempt).await;
        let end = self.end_of(&attempt);
        let now = self.link.backend.now();
        let next = self.change(|agenda| {
            let duty = agenda.get_mut(&attempt.owner)?;
            let is_first = !duty.is_tried;
            let next = duty.answered(&outcome, now, end);
            match next {
                Next::Again(moment) => agenda.schedule(&attempt.owner, moment),
                Next::Done | Next::WasGone { .. } | Next::Abandoned => {
                    drop(agenda.remove(&attempt.owner));
                }
            }
            Some((next, is_first))
        });
        if self.in_flight.fetch_sub(1, Ordering::AcqRel) == MAX_IN_FLIGHT {
            self.worklist.wake();
        }
        if let Some((next, is_first)) = next {
            self.tell(&attempt.key, &next, outcome);
            self.count(&attempt.key, &next, is_first);
        }
    }

    fn tell(&self, key: &LockKey, next: &Next, outcome: Result<Release, Fault>) {
        let key = self.link.reporting.show(key);
        match (next, outcome) {
            (Next::WasGone { taken }, _) => telemetry::released_too_late(key, *taken),
            (Next::Abandoned, Err(fault)) => telemetry::release_abandoned(key, &fault.message),
            _ => {}
        }
    }

    fn count(&self, key: &LockKey, next: &Next, is_first: bool) {
        if is_first {
            self.mark_tried(key);
        }
        if !matches!(next, Next::Again(_)) {
            self.mark_ended();
        }
    }

    /// Lets the calls go on that wait for this hand-over.
    fn mark_tried(&self, key: &LockKey) {
        let mut untried = self.untried();
        if let Some(count) = untried.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                untried.remove(key);
                trim(&mut untried);
            }
        }
        drop(untried);
        self.changed.notify_waiters();
    }

    fn mark_ended(&self) {
        telemetry::backlog_shrinks();
        self.close();
    }

    fn begin(&self) {
        exit::watch_this_thread();
        self.open.fetch_add(1, Ordering::AcqRel);
        self.work.begin();
    }

    fn close(&self) {
        self.work.end();
        self.open.fetch_sub(1, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    async fn wait_until(&self, is_met: impl Fn() -> bool) {
        loop {
            // Registered before the look, so that a change right after it is not missed.
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if is_met() {
                return;
            }
            changed.await;
        }
    }

    fn untried(&self) -> MutexGuard<'_, HashMap<LockKey, usize>> {
        // Counts change one at a time, so a panic elsewhere leaves them sound.
        self.untried.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After this the backend cannot know the attempt any more, even if its last request was late.
    fn end_of(&self, attempt: &Attempt) -> Moment {
        attempt
            .lapses_at()
            .unwrap_or_else(|| self.link.backend.now())
            .after(self.link.command_deadline)
    }
}

/// Work in the background besides releases that the end of the process must not cut off.
pub(crate) struct Pending(Arc<Releaser>);

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What became of a release that was handed over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Accepted {
    New,
    Merged,
    TooMany,
}

impl Agent for Releaser {
    type Key = OwnerToken;
    type Item = Duty;

    fn worklist(&self) -> &Worklist<OwnerToken, Duty> {
        &self.worklist
    }

    fn link(&self) -> &Link {
        &self.link
    }

    fn capacity(&self) -> usize {
        MAX_IN_FLIGHT.saturating_sub(self.in_flight.load(Ordering::Acquire))
    }

    fn perform(self: &Arc<Self>, due: Vec<OwnerToken>) {
        for token in due {
            let attempt = |agenda: &mut Agenda<OwnerToken, Duty>| {
                agenda.get_mut(&token).map(|duty| Arc::clone(&duty.attempt))
            };
            if let Some(attempt) = self.worklist.look(attempt) {
                self.in_flight.fetch_add(1, Ordering::AcqRel);
                self.link.backend.detach(Box::pin(Arc::clone(self).release(attempt)));
            }
        }
    }
}

async fn release_late_grant(
    releaser: Arc<Releaser>,
    attempt: Arc<Attempt>,
    reply: Reply<Acquisition>,
) {
    let limit = releaser.link.command_deadline;
    let known = match releaser.link.question(reply).late_answer(limit).await {
        Some(Ok(Acquisition::Granted { .. })) => Some(Known::Granted),
        Some(Err(fault)) if !fault.proves_absence => Some(Known::Unknown),
        Some(Ok(Acquisition::Busy) | Err(_)) => None,
        // The connection hangs; what it may still bring is released over another one.
        None => Some(Known::Unknown),
    };
    match known {
        Some(known) => releaser.start(&attempt, known),
        None => releaser.forget(&attempt),
    }
}

/// One release, within one command deadline.
pub(crate) async fn try_release(link: &Link, attempt: &Arc<Attempt>) -> Result<Release, Fault> {
    let answer = pin!(link.ask(link.backend.release(Arc::clone(attempt))));
    telemetry::releasing(link.reporting.show(&attempt.key), answer).await
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;
    use crate::types::options::Ttl;

    fn releaser() -> Arc<Releaser> {
        Releaser::new(Arc::new(Link::in_memory()))
    }

    fn attempt() -> Arc<Attempt> {
        Arc::new(Attempt::new(LockKey::from_static("k"), Ttl::DEFAULT, None).unwrap())
    }

    fn waiting(releaser: &Releaser) -> usize {
        releaser.worklist.look(|agenda| agenda.len())
    }

    #[test]
    fn a_release_that_is_handed_over_twice_is_one() {
        let (releaser, attempt) = (releaser(), attempt());
        releaser.adopt(Arc::clone(&attempt), Box::pin(pending()));
        releaser.defer(Arc::clone(&attempt), Known::Granted);
        assert_eq!((waiting(&releaser), releaser.open.load(Ordering::Acquire)), (1, 1));
        releaser.forget(&attempt);
        assert_eq!((waiting(&releaser), releaser.open.load(Ordering::Acquire)), (0, 0));
        assert!(releaser.untried().is_empty());
    }

    #[test]
    fn of_too_many_releases_the_last_are_left_to_their_leases() {
        let releaser = releaser();
        for _ in 0..LIMIT {
            assert!(releaser.accept(attempt(), Known::Unknown, None));
        }
        assert!(!releaser.accept(attempt(), Known::Unknown, None));
        assert_eq!((waiting(&releaser), releaser.open.load(Ordering::Acquire)), (LIMIT, LIMIT));
    }
}
