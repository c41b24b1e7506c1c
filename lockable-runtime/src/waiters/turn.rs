//! The turn of a process: one grant, and the local passes that follow it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::Waiters;
use crate::backend::{Attempt, Enqueued, Fault, Grant, Listener, Release};
use crate::releaser::Known;
use crate::types::clock::Moment;
use crate::types::error::LockErrorKind;
use crate::types::options::Ttl;
use crate::types::token::FencingToken;

/// A turn may be passed on this often: the fencing tokens that a grant reserves, but for its own.
///
/// See "How long may one process keep its turn?" in DESIGN.md.
const PASSES: u64 = 16;

/// A turn may be passed on for this long; other processes wait meanwhile.
const LENGTH: Duration = Duration::from_millis(5);

/// A held lock that came from a queue.
///
/// On its way to a waiter it releases itself when it is dropped, or is passed to the next one. A guard
/// that has it releases for it: then the calls that wait only ask for another turn.
pub(crate) struct Turn(Option<Inner>);

struct Inner {
    waiters: Arc<Waiters>,
    attempt: Arc<Attempt>,
    fence: u64,
    passes: u64,
    began: Moment,
    since: Option<Moment>,
    granted: Ttl,
    is_fair: bool,
    has_guard: bool,
}

impl Turn {
    pub(super) fn new(
        waiters: Arc<Waiters>,
        attempt: Arc<Attempt>,
        grant: &Grant,
        now: Moment,
    ) -> Self {
        let counts = attempt.sent_at().is_some_and(|sent| sent >= grant.counts_from);
        Self(Some(Inner {
            waiters,
            attempt,
            fence: grant.fence,
            passes: 0,
            began: now,
            since: grant.since.filter(|_| counts),
            granted: grant.ttl,
            is_fair: false,
            has_guard: false,
        }))
    }

    /// A guard takes the release over.
    pub(crate) fn guarded(mut self) -> Self {
        if let Some(inner) = &mut self.0 {
            inner.has_guard = true;
        }
        self
    }

    pub(super) fn set_fair(&mut self, is_fair: bool) {
        if let Some(inner) = &mut self.0 {
            inner.is_fair = is_fair;
        }
    }

    pub(crate) fn attempt(&self) -> Option<&Arc<Attempt>> {
        self.0.as_ref().map(|inner| &inner.attempt)
    }

    pub(crate) fn fencing_token(&self) -> Option<FencingToken> {
        let inner = self.0.as_ref()?;
        Some(FencingToken::new(inner.fence.saturating_add(inner.passes)))
    }

    /// Whether it came from another holder of this process, and not from the queue.
    pub(crate) fn is_passed_on(&self) -> bool {
        self.0.as_ref().is_some_and(|inner| inner.passes > 0)
    }

    /// From when on the grant counts, where that is known, and how long it lasts.
    pub(crate) fn grant(&self) -> Option<(Option<Moment>, Ttl)> {
        self.0.as_ref().map(|inner| (inner.since, inner.granted))
    }

    /// Asks again for a lock that was granted a while ago.
    ///
    /// No renewal would do: the grant may have lapsed, others may have had the lock, and the same
    /// attempt may have it again. Then its fencing tokens are older than theirs.
    ///
    /// # Cancel safety
    /// The answer is waited for in the background, and a lock that it grants is passed to the next waiter.
    pub(crate) async fn claim(self) -> Claimed {
        let Some(inner) = &self.0 else { return Claimed::Busy };
        let waiters = Arc::clone(&inner.waiters);
        let (sender, claimed) = oneshot::channel();
        let (this, pending) = (Arc::clone(&waiters), waiters.releaser.pending());
        waiters.link.backend.detach(Box::pin(async move {
            let _until_the_end = pending;
            claim(&this, self, sender).await;
        }));
        claimed.await.unwrap_or(Claimed::Busy)
    }

    /// It was granted again, with newer fencing tokens.
    fn rely_on(&mut self, grant: &Grant) {
        if let Some(inner) = &mut self.0 {
            (inner.fence, inner.passes) = (grant.fence, 0);
            (inner.since, inner.granted) = (grant.since, grant.ttl);
        }
    }

    /// Ends a turn whose lock was lost. The process may have asked for its place again before it heard
    /// of the grant, so that place is given up with it.
    pub(crate) fn lose(mut self) {
        if let Some(inner) = self.0.take() {
            inner.waiters.turn_ended(&inner.attempt, false);
            inner.waiters.withdraw(inner.attempt);
        }
    }

    /// Passes the lock to the next waiter of this process, if it may; returns whether it did.
    pub(crate) fn pass(&mut self) -> bool {
        let Some(inner) = self.0.take() else { return false };
        let now = inner.waiters.link.backend.now();
        let is_held = inner.since.is_some_and(|since| now < since.after(inner.granted.usable()));
        let is_over = !is_held
            || inner.is_fair
            || inner.passes >= PASSES
            || now.since(inner.began) >= LENGTH
            || inner.waiters.next_is_fair(&inner.attempt.key);
        if is_over {
            self.0 = Some(inner);
            return false;
        }
        let (waiters, key) = (Arc::clone(&inner.waiters), inner.attempt.key.clone());
        let passed = Self(Some(Inner { passes: inner.passes + 1, has_guard: false, ..inner }));
        match waiters.give(&key, passed) {
            None => true,
            Some(mut returned) => {
                self.0 = returned.0.take().map(|inner| Inner { has_guard: true, ..inner });
                false
            }
        }
    }

    /// Begins the end of the turn, which is there when its release was answered.
    pub(crate) fn end(mut self) -> Option<Ending> {
        let inner = self.0.take()?;
        let withdraws = inner.attempt.has_open_question();
        let next = inner.waiters.next_entry(&inner.attempt);
        let (waiters, ended) = (inner.waiters, inner.attempt);
        Some(Ending { waiters, ended, withdraws, next, is_answered: false, is_queued: false })
    }
}

/// The result of claiming a turn.
pub(crate) enum Claimed {
    Granted(Turn),
    /// Another holder has the lock.
    Busy,
    /// No answer came in time, or an error.
    Fault(Fault),
}

/// Claims the lock of a turn for the caller, and gives up what no call waits for.
///
/// The turn stays here until the answer has come: a release before that could be overtaken by the
/// request, which would take the lock again without a holder.
async fn claim(waiters: &Arc<Waiters>, mut turn: Turn, caller: oneshot::Sender<Claimed>) {
    let Some(attempt) = turn.attempt().map(Arc::clone) else { return };
    let link = &waiters.link;
    let mut question = link.question(link.backend.enqueue(Arc::clone(&attempt)));
    let answer = question.answer().await;
    if let Ok(Enqueued::Granted(grant)) = &answer {
        turn.rely_on(grant);
        // A caller that has gone returns it; its drop passes it to the next waiter.
        return drop(caller.send(Claimed::Granted(turn)));
    }
    // The turn ends without a release: the attempt is given up below.
    drop(turn.guarded());
    drop(caller.send(match &answer {
        Ok(_) => Claimed::Busy,
        Err(fault) => Claimed::Fault(fault.clone()),
    }));
    match question.late_answer(link.command_deadline).await.unwrap_or(answer) {
        Ok(_) => waiters.withdraw(attempt),
        Err(fault) if fault.kind != LockErrorKind::Unavailable => waiters.withdraw(attempt),
        // The request may still land, after any number of releases that find nothing.
        Err(_) => waiters.releaser.defer(attempt, Known::Unknown),
    }
}

/// The end of a turn. Until its release was answered the line has its turn, so that an answer or a
/// message that is late, and repeats the grant of this turn, does not release it as well.
///
/// A question for this turn that has no answer yet may land behind the release, on another connection:
///
/// 1. The question is sent, and is slow.
/// 2. The grant comes by message, the body runs, and the release frees the lock.
/// 3. The question lands and takes the lock, or a place in the queue.
/// 4. Its answer comes before that of the release, and is taken for a repetition of the grant.
///
/// So what the attempt has then is withdrawn once the release was answered. A release that was given up
/// is deferred to the background, where it comes after the question.
///
/// See "When is a turn over?" in DESIGN.md.
pub(crate) struct Ending {
    waiters: Arc<Waiters>,
    /// The attempt of the turn.
    ended: Arc<Attempt>,
    /// Whether a question for the attempt had no answer when its release began.
    withdraws: bool,
    /// The next place of this process in the queue, asked for with the release.
    next: Option<Arc<Attempt>>,
    /// Whether the release was answered.
    is_answered: bool,
    /// Whether the next place is known to be queued; if not, the calls that wait have to ask for one.
    is_queued: bool,
}

impl Ending {
    /// Releases the turn's attempt, and queues the next one behind the others.
    ///
    /// # Cancel safety
    /// The calls that wait ask again.
    pub(crate) async fn release(mut self, attempt: Arc<Attempt>) -> Result<Release, Fault> {
        let link = &self.waiters.link;
        let Some(next) = &self.next else {
            let found = link.ask(link.backend.release(attempt)).await?;
            self.is_answered = true;
            return Ok(found);
        };
        let reply = link.backend.release_to(attempt, Arc::clone(next));
        let (found, grant) = link.ask(reply).await?;
        (self.is_answered, self.is_queued) = (true, true);
        if let Some(grant) = grant {
            self.waiters.on_grant(grant);
        }
        Ok(found)
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.waiters.turn_ended(&self.ended, self.is_queued);
        if self.withdraws && self.is_answered {
            self.waiters.withdraw(Arc::clone(&self.ended));
        }
        if let Some(next) = &self.next {
            self.waiters.withdraw_if_orphaned(next);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let is_on_its_way = self.0.as_ref().is_some_and(|inner| !inner.has_guard);
        if is_on_its_way && self.pass() {
            return;
        }
        if let Some(inner) = self.0.take() {
            inner.waiters.turn_ended(&inner.attempt, false);
            if is_on_its_way {
                inner.waiters.releaser.defer(inner.attempt, Known::Releasing);
            }
        }
    }
}
