//! Waiting without polling: the lines of this process, their places in the backend's queues, and
//! the turns that they are granted.
//!
//! See "How does a call wait?" in DESIGN.md.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::backend::{Attempt, Grant, Link, Listener};
use crate::releaser::{Known, Releaser};
use crate::request_id::RequestId;
use crate::types::error::{LockError, LockErrorKind};
use crate::types::key::LockKey;
use crate::types::options::Ttl;
use crate::types::token::{CurrentOrigin, Origin, OwnerToken, random};
use crate::worker::agenda::Agenda;
use crate::worker::{Agent, InFlight, Worklist};

pub(crate) use self::line::Heard;
use self::line::{Begun, Line};
pub(crate) use self::turn::{Claimed, Turn};

mod asking;
mod line;
mod turn;

/// A waiter asks by itself after this long, whether or not the message it waits for is lost: before a
/// grant that it has not heard of ends, which lasts for a second.
///
/// See "What if the message of a grant is lost?" in DESIGN.md.
const RECHECK_INTERVAL: Duration = Duration::from_millis(800);

/// The calls of this process that wait for locks of one locker.
pub(crate) struct Waiters {
    link: Arc<Link>,
    releaser: Arc<Releaser>,
    worklist: Worklist<LockKey, Line<Waiting>>,
    next_id: AtomicU64,
    origin: CurrentOrigin,
    this: Weak<Self>,
}

/// A call that is about to wait.
#[derive(Clone)]
pub(crate) struct Newcomer {
    /// Its place in the order of arrival.
    pub(crate) number: u64,
    pub(crate) ttl: Ttl,
    pub(crate) is_fair: bool,
    pub(crate) identity: Option<RequestId>,
    /// What the backend answered to this call itself.
    pub(crate) heard: Heard,
}

/// One call that waits.
pub(crate) struct Waiting {
    ttl: Ttl,
    is_fair: bool,
    identity: Option<RequestId>,
    answer: oneshot::Sender<Result<Turn, LockError>>,
}

impl Waiters {
    pub(crate) fn new(link: Arc<Link>, releaser: Arc<Releaser>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            worklist: Worklist::new(&link),
            link,
            releaser,
            next_id: AtomicU64::new(0),
            origin: CurrentOrigin::default(),
            this: Weak::clone(this),
        })
    }

    /// How many wait for this lock already; a newcomer goes behind them.
    pub(crate) fn waiting(&self, key: &LockKey) -> usize {
        self.worklist.look(|agenda| agenda.get_mut(key).map_or(0, |line| line.len()))
    }

    /// What is known of this lock where calls wait for it.
    pub(crate) fn heard(&self, key: &LockKey) -> Heard {
        let heard = |line: &mut Line<Waiting>| line.heard.clone();
        self.worklist.look(|agenda| agenda.get_mut(key).map_or(Heard::Nothing, heard))
    }

    /// A place in the order of arrival.
    pub(crate) fn number(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Joins the line, behind those who came before, whose numbers are lower; returns the turn when it comes.
    ///
    /// # Cancel safety
    /// A waiter that is dropped leaves its line at once, and a turn that arrives while it leaves is passed to the next waiter.
    pub(crate) fn turn<'a>(
        self: &'a Arc<Self>,
        key: &'a LockKey,
        newcomer: Newcomer,
    ) -> impl Future<Output = Result<Turn, LockError>> + Send + 'a {
        let (sender, answer) = oneshot::channel();
        let id = newcomer.number;
        self.join(key, newcomer, sender);
        let place = Place { waiters: self, key, id, is_over: false };
        // No async fn, which would store the newcomer for as long as it waits.
        async move {
            // All of it, not its fields alone: it is dropped with this future.
            let mut place = place;
            let turn = answer.await;
            place.is_over = true;
            turn.unwrap_or_else(|_| {
                // The sender is never dropped unused.
                Err(LockError::new(LockErrorKind::Unavailable, "the line was given up"))
            })
        }
    }

    fn join(
        self: &Arc<Self>,
        key: &LockKey,
        newcomer: Newcomer,
        answer: oneshot::Sender<Result<Turn, LockError>>,
    ) {
        let now = self.link.backend.now();
        let Newcomer { number, ttl, is_fair, identity, heard } = newcomer;
        self.change(|agenda| {
            if agenda.get_mut(key).is_none() {
                drop(agenda.insert(key.clone(), Line::default(), None));
            }
            let Some(line) = agenda.get_mut(key) else { return };
            let is_first = line.len() == 0;
            line.join(number, Waiting { ttl, is_fair, identity, answer });
            line.learn(heard);
            if is_first {
                // The holder of a turn passes it on, or asks for another one; if not, this asks.
                let due = if line.has_turn() { now.after(RECHECK_INTERVAL) } else { now };
                agenda.schedule(key, due);
            }
        });
    }

    fn leave(self: &Arc<Self>, key: &LockKey, id: u64) {
        let unused = self.change(|agenda| {
            agenda.get_mut(key)?.leave(id);
            close(agenda, key)
        });
        self.withdraw_all(unused);
    }

    fn withdraw_all(self: &Arc<Self>, entries: impl IntoIterator<Item = Arc<Attempt>>) {
        entries.into_iter().for_each(|entry| self.withdraw(entry));
    }

    /// Gives up a place in the queue at which no call waits any more.
    fn withdraw(self: &Arc<Self>, attempt: Arc<Attempt>) {
        if attempt.sent_at().is_none() {
            // The task that is about to send it looks again after that.
            return;
        }
        let (this, pending) = (Arc::clone(self), self.releaser.pending());
        self.link.backend.detach(Box::pin(async move {
            let _until_the_end = pending;
            let left = this.link.ask(this.link.backend.leave(Arc::clone(&attempt)));
            if left.await.is_err() {
                // What remains is granted at some time, and passed to the next waiter when it is not claimed.
                this.releaser.defer(attempt, Known::Unknown);
            }
        }));
    }

    /// Ends a turn; the line asks for another one at once, unless it is queued with the release.
    fn turn_ended(self: &Arc<Self>, ended: &Attempt, is_queued: bool) {
        let unused = self.change(|agenda| {
            let line = agenda.get_mut(&ended.key)?;
            line.end_turn(ended);
            if line.len() > 0 && !is_queued {
                agenda.schedule(&ended.key, self.link.backend.now());
            }
            close(agenda, &ended.key)
        });
        self.withdraw_all(unused);
    }

    /// The attempt that is queued by the release of a turn, where a call waits for it.
    fn next_entry(self: &Arc<Self>, ended: &Attempt) -> Option<Arc<Attempt>> {
        let (key, now) = (&ended.key, self.link.backend.now());
        // A lock that stays taken for a minimum hold is not handed off at the end of that.
        let rest = ended.min_hold.rest(|| now).unwrap_or(RECHECK_INTERVAL);
        let next = now.after(rest.min(RECHECK_INTERVAL));
        // Without one the line asks by itself.
        let make = self.attempt_for(key).ok()?;
        self.change(|agenda| {
            let line = agenda.get_mut(key)?;
            let attempt = line.entry_or(make)?;
            agenda.schedule(key, next);
            Some(attempt)
        })
    }

    /// Gives a turn to the first that still waits.
    fn give(self: &Arc<Self>, key: &LockKey, mut turn: Turn) -> Option<Turn> {
        loop {
            let next = self.worklist.look(|agenda| agenda.get_mut(key)?.next());
            let Some(waiting) = next else { return Some(turn) };
            turn.set_fair(waiting.is_fair);
            // A call that has gone returns it.
            let Err(Ok(returned)) = waiting.answer.send(Ok(turn)) else { return None };
            turn = returned;
        }
    }

    fn next_is_fair(&self, key: &LockKey) -> bool {
        let is_fair = |line: &mut Line<Waiting>| line.first().is_some_and(|first| first.is_fair);
        self.worklist.look(|agenda| agenda.get_mut(key).is_some_and(is_fair))
    }

    /// Makes the next attempt, if one is needed. The number of its owner token is random, because another
    /// process may have the same origin for a while: one that was started from the same image.
    ///
    /// # Errors
    /// When the system gives no randomness.
    fn attempt_for(
        &self,
        key: &LockKey,
    ) -> Result<impl FnOnce(&Waiting) -> Arc<Attempt>, LockError> {
        let (origin, number) = (self.origin.get()?, random()?);
        Ok(move |first: &Waiting| {
            let owner = OwnerToken::at(origin, number, first.identity.as_ref());
            Arc::new(Attempt::owned(key.clone(), first.ttl, owner))
        })
    }
}

/// Gives up a line in which no call waits, and returns its place in the queue, if it has one. The line
/// itself stays for as long as one of its calls has its turn.
fn close(agenda: &mut Agenda<LockKey, Line<Waiting>>, key: &LockKey) -> Option<Arc<Attempt>> {
    let line = agenda.get_mut(key)?;
    if line.len() > 0 {
        return None;
    }
    let entry = line.entry.take();
    if !line.has_turn() {
        drop(agenda.remove(key));
    }
    entry
}

impl Listener for Waiters {
    fn on_grant(&self, grant: Grant) {
        let Some(this) = self.this.upgrade() else { return };
        let now = this.link.backend.now();
        let begun = this.change(|agenda| {
            let begun = agenda
                .get_mut(&grant.key)
                .map_or(Begun::Unwanted, |line| line.begin_turn(&grant.owner));
            if matches!(begun, Begun::Turn(_)) {
                agenda.schedule(&grant.key, now.after(RECHECK_INTERVAL));
            }
            begun
        });
        let attempt = match begun {
            Begun::Turn(attempt) => attempt,
            Begun::Already => return,
            // From before the subscription broke: perhaps a grant of a process that was started from the
            // same image, which releases it. One of this process is withdrawn, or ends after a second.
            Begun::Unwanted if !this.origin.is_of(&grant.owner) => return,
            Begun::Unwanted => {
                // A late request for a place: no call of this locker waits for it any more.
                let unwanted = Arc::new(Attempt::owned(grant.key, grant.ttl, grant.owner));
                unwanted.mark_sent(now);
                return this.releaser.defer(unwanted, Known::Releasing);
            }
        };
        attempt.mark_renewed(now, grant.ttl);
        let turn = Turn::new(Arc::clone(&this), attempt, &grant, now);
        // No call waits any more: it ends by being dropped.
        let _unwanted: Option<Turn> = this.give(&grant.key, turn);
    }

    fn waiting_origins(&self) -> BTreeSet<Origin> {
        let origin = |line: &Line<Waiting>| Origin::of(&line.entry.as_ref()?.owner);
        self.worklist.look(|agenda| agenda.items().filter_map(origin).collect())
    }

    fn on_resubscribed(&self, origin: Origin) {
        let Some(this) = self.this.upgrade() else { return };
        this.origin.set(origin);
        let now = this.link.backend.now();
        this.change(|agenda| agenda.schedule_all(now));
    }
}

impl Agent for Waiters {
    type Key = LockKey;
    type Item = Line<Waiting>;

    fn worklist(&self) -> &Worklist<LockKey, Line<Waiting>> {
        &self.worklist
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.link.backend.home(false).spawn(task));
    }

    fn perform(self: &Arc<Self>, due: Vec<LockKey>) {
        for key in due {
            self.spawn(Arc::clone(self).ask(InFlight::begin(self), key));
        }
    }
}

/// A place in a line, which is left when this is dropped.
struct Place<'a> {
    waiters: &'a Arc<Waiters>,
    key: &'a LockKey,
    id: u64,
    is_over: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.is_over && !self.waiters.link.is_inherited() {
            self.waiters.leave(self.key, self.id);
        }
    }
}
