//! A call that waits in the line of its process, and what it returns at its limit.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument;

use super::acquirer::TryReply;
use super::busy::Busy;
use super::call::OneCall;
use crate::core::backend::{Fault, Outcome};
use crate::core::hold::guard::LockGuard;
use crate::core::holder::Holder;
use crate::core::lease::Lease;
use crate::core::process::clock::within;
use crate::core::telemetry::{self, Hold, Waiting};
use crate::core::types::error::{LockError, LockErrorKind};
use crate::core::types::line_key::LineKey;
use crate::core::types::owner::Held;
use crate::core::waiters::{Entry, Granted, LastReply, RECHECK_INTERVAL, Turn};

/// A call that was granted this number of whole leases, each of which was over when the answer came, has too short a
/// lease for its connection. One may be lost while a process is paused.
const LOST_TURNS: u32 = 5;

pub(super) struct InLine<'a> {
    call: OneCall<'a>,
    line: &'a LineKey,
    entry: Entry,
    /// Whether the call has tried by itself, and so found another holder.
    has_tried: bool,
    lost_turns: u32,
    obstacle: Option<Box<Holder>>,
}

impl<'a> InLine<'a> {
    pub(super) fn new(call: OneCall<'a>, line: &'a LineKey, entry: Entry, has_tried: bool) -> Self {
        Self { call, line, entry, has_tried, lost_turns: 0, obstacle: None }
    }

    pub(super) fn behind(self, obstacle: Option<Box<Holder>>) -> Self {
        Self { obstacle, ..self }
    }

    /// Waits behind the earlier calls of this process, as long as the options say.
    ///
    /// # Cancel safety
    /// A waiter that is dropped leaves the queue; a lock that it is granted meanwhile is passed to the next waiter.
    pub(super) async fn wait(mut self) -> Result<LockGuard, LockError> {
        let (gate, key) = (&self.call.acquirer.gate, self.line.key());
        let waiting = pin!(async {
            match self.call.options.wait.limit() {
                None => self.turns().await,
                Some(limit) => self.wait_at_most(limit).await,
            }
        });
        gate.while_open(key, waiting).await
    }

    async fn wait_at_most(&mut self, limit: Duration) -> Result<LockGuard, LockError> {
        let acquirer = self.call.acquirer;
        let rest = limit.saturating_sub(self.call.waited());
        if rest.is_zero() && self.has_tried {
            return Err(self.busy(limit, None));
        }
        let line = self.line;
        let (last_reply, obstacle) = {
            let mut turns = pin!(self.turns());
            let timer = || acquirer.context.backend.timer(rest);
            if let Some(outcome) = within(timer, turns.as_mut()).await {
                return outcome;
            }
            // Before the call leaves the line, which may be the end of it.
            (acquirer.waiters.last_reply(line), acquirer.waiters.obstacle(line))
        };
        if matches!(last_reply, LastReply::Nothing) && !self.has_tried && !self.holds() {
            return self.try_at_limit(limit).await;
        }
        Err(self.at_limit(last_reply, obstacle, limit))
    }

    /// The first try of a call that relied on those in line, which have no reply yet.
    async fn try_at_limit(&mut self, limit: Duration) -> Result<LockGuard, LockError> {
        let mut entry = self.entry.take();
        entry.tries();
        // Boxed, because every call that waits has the space for this and hardly one needs it.
        let OneCall { acquirer, options, .. } = self.call;
        let tried =
            acquirer.try_once(self.line.key().clone(), self.line.local_permit(), options, entry);
        match Box::pin(tried).await? {
            TryReply::Granted(guard) => Ok(guard),
            TryReply::Busy(busy, entry) => {
                entry.ends(LastReply::Busy);
                Err(self.call.wait_limit_reached(&busy, limit))
            }
        }
    }

    async fn turns(&mut self) -> Result<LockGuard, LockError> {
        let OneCall { acquirer, options, .. } = self.call;
        let context = &acquirer.context;
        let waiting = Waiting::start(&context.backend, self.call.shown(self.line.key()));
        while self.lost_turns < LOST_TURNS {
            let last_reply = if self.has_heard() { LastReply::Busy } else { LastReply::Nothing };
            // The entry stays from turn to turn: a call that lost a turn has its old place.
            let entry = (&self.entry, options);
            let turn = acquirer.waiters.turn(self.line, entry, last_reply);
            let turn = turn.instrument(waiting.span.clone()).await?;
            self.has_tried = true;
            if let Some(guard) = self.begin(turn, &waiting) {
                context.count(self.line.key(), Outcome::Granted);
                return Ok(guard);
            }
            self.lost_turns += 1;
        }
        Err(LockError::too_late(self.line.key().as_str()))
    }

    fn has_heard(&self) -> bool {
        self.has_tried && self.lost_turns == 0
    }

    fn begin(&mut self, turn: Turn, waiting: &Waiting<'_>) -> Option<LockGuard> {
        let OneCall { acquirer, options, .. } = self.call;
        let (context, attempt) = (&acquirer.context, Arc::clone(turn.held()));
        let Granted { grant, is_passed_on, .. } = &turn.granted;
        let Some(lease) = Lease::of(grant, attempt, options, Arc::clone(context)) else {
            turn.lose();
            return None;
        };
        let now = context.backend.now();
        let hold = Hold::new(now, waiting.until(now), options.renew);
        telemetry::handed_off(options.label, *is_passed_on);
        let mut entry = self.entry.take();
        if self.line.local_permit().is_some() {
            entry.moves(lease.key());
        }
        Some(acquirer.guard(lease, options, entry, hold, Some(Box::new(turn))))
    }

    /// Busy only if that is known: a backend that gives no answer may have a free lock.
    ///
    /// See "What does a call return at its wait limit?" in DESIGN.md.
    fn at_limit(
        &self,
        last_reply: LastReply,
        obstacle: Option<Arc<Held>>,
        limit: Duration,
    ) -> LockError {
        let context = &self.call.acquirer.context;
        let fault = match last_reply {
            LastReply::Fault(fault) if !self.holds() => *fault,
            LastReply::Nothing if self.lost_turns > 0 => Fault::too_late(),
            LastReply::Nothing if !self.holds() => {
                let message = format!("{}: no reply yet", context.backend.name());
                Fault::new(LockErrorKind::Unavailable, message)
            }
            _ => return self.busy(limit, obstacle),
        };
        let message = format!("{}; the wait limit of {limit:?} was reached", fault.message);
        Fault { message, ..fault }.about(self.line.key(), &context.reporting)
    }

    fn busy(&self, limit: Duration, obstacle: Option<Arc<Held>>) -> LockError {
        let busy =
            Busy::new(self.line.key().clone(), obstacle, &self.call.acquirer.context.reporting);
        // After that the line has an answer of its own.
        let tried = self.obstacle.clone().filter(|_| self.call.waited() < RECHECK_INTERVAL);
        let busy = if busy.obstacle.is_some() { busy } else { busy.by(tried) };
        self.call.wait_limit_reached(&busy, limit)
    }

    fn holds(&self) -> bool {
        self.call.acquirer.leases(self.line.key()).iter().any(Lease::is_held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::locker::Locker;
    use crate::core::types::options::Wait;
    use crate::core::waiters::Admission;

    /// Method: another call has tried, and its answer does not come.
    #[tokio::test(start_paused = true)]
    async fn a_call_that_heard_nothing_tries_at_its_limit() {
        let locker = Locker::in_memory();
        let guard = locker.lock("k").acquire().await.unwrap();
        let key = guard.lease().key().clone();
        guard.release().await.unwrap();
        let (acquirer, now) = (locker.acquirer(), locker.context().backend.now());
        let (Admission::Tries, _asks) = acquirer.waiters.enter(&key, Wait::Forever, now) else {
            unreachable!("no other call is there")
        };
        let limit = Duration::from_millis(100);
        let guard = locker.lock("k").wait(limit).acquire().await.unwrap();
        assert_eq!(locker.context().backend.now().since(now).as_millis(), limit.as_millis());
        assert!(guard.lease().is_held());
    }
}
