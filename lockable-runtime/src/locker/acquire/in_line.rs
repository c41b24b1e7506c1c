//! A call that waits in the line of its process, and what it says at its limit.

use std::pin::pin;
use std::time::Duration;

use tracing::Instrument;

use super::{Acquirer, NoTurn, Wanted};
use crate::backend::{Fault, Outcome};
use crate::hold::guard::LockGuard;
use crate::lease::Lease;
use crate::telemetry::{self, Waiting};
use crate::types::clock::{Moment, within};
use crate::types::error::{LockError, LockErrorKind};
use crate::waiters::{Heard, Newcomer};

/// A call that was granted this many whole leases, each of which was over when the answer came, has too
/// short a lease for its link. One may be lost where a process stands still.
const LOST_TURNS: u32 = 5;

/// A call that waits in line.
pub(super) struct InLine<'a> {
    acquirer: &'a Acquirer,
    wanted: &'a Wanted,
    /// When the call began: its limit counts from here.
    start: Moment,
    /// Whether the call has asked by itself, and so found another holder.
    has_tried: bool,
    /// Whether the call was granted a turn, and asks whether it still holds the lock.
    has_turn: bool,
    /// How many leases were over when the call heard of them.
    lost_turns: u32,
}

impl<'a> InLine<'a> {
    pub(super) fn new(
        acquirer: &'a Acquirer,
        wanted: &'a Wanted,
        start: Moment,
        has_tried: bool,
    ) -> Self {
        Self { acquirer, wanted, start, has_tried, has_turn: false, lost_turns: 0 }
    }

    /// Waits as long as the terms say.
    pub(super) async fn wait(mut self) -> Result<LockGuard, LockError> {
        match self.wanted.terms.wait.limit() {
            None => self.turns().await,
            Some(limit) => self.wait_at_most(limit).await,
        }
    }

    async fn wait_at_most(&mut self, limit: Duration) -> Result<LockGuard, LockError> {
        let (acquirer, key) = (self.acquirer, &self.wanted.key);
        let rest = limit.saturating_sub(self.waited());
        if rest.is_zero() && self.has_tried {
            return Err(self.busy(limit));
        }
        let heard = {
            let mut turns = pin!(self.turns());
            let timer = || acquirer.backend().timer(rest);
            if let Some(outcome) = within(timer, turns.as_mut()).await {
                return outcome;
            }
            // Before the call leaves the line, which may be the end of it.
            acquirer.waiters.heard(key)
        };
        if matches!(heard, Heard::Nothing) && !self.has_tried {
            return self.try_at_limit(limit).await;
        }
        Err(self.at_limit(heard, limit))
    }

    /// The first try of a call that counted on those in line, who have heard nothing yet.
    async fn try_at_limit(&self, limit: Duration) -> Result<LockGuard, LockError> {
        // Boxed, because every call that waits carries the room for this and hardly one needs it.
        let tried = Box::pin(self.acquirer.try_acquire(self.wanted.clone())).await?;
        tried.map_err(|_| self.busy(limit))
    }

    /// Waits for a turn that lasts until the call has it.
    async fn turns(&mut self) -> Result<LockGuard, LockError> {
        let (acquirer, wanted) = (self.acquirer, self.wanted);
        let waiting = Waiting::start(acquirer.backend(), acquirer.reporting().show(&wanted.key));
        // Kept from turn to turn: a call that lost one has its old place.
        let number = acquirer.waiters.number();
        let mut heard = if self.has_tried { Heard::Busy } else { Heard::Nothing };
        while self.lost_turns < LOST_TURNS {
            let turn = acquirer.waiters.turn(&wanted.key, self.newcomer(number, heard));
            let turn = turn.instrument(waiting.span()).await?;
            (self.has_tried, self.has_turn) = (true, true);
            heard = match acquirer.begin(turn, wanted, &waiting).await {
                Ok(guard) => {
                    acquirer.link().count(&wanted.key, Outcome::Granted);
                    return Ok(guard);
                }
                Err(NoTurn::Busy) => Heard::Busy,
                Err(NoTurn::Fault(fault)) => Heard::Fault(Box::new(fault)),
                Err(NoTurn::TooLate) => {
                    self.lost_turns += 1;
                    Heard::Nothing
                }
            };
            self.has_turn = false;
        }
        Err(LockError::too_late(wanted.key.as_str()))
    }

    fn newcomer(&self, number: u64, heard: Heard) -> Newcomer {
        let Wanted { terms, identity, .. } = self.wanted;
        let (ttl, is_fair, identity) = (terms.ttl, terms.fair, identity.clone());
        Newcomer { number, ttl, is_fair, identity, heard }
    }

    /// Busy only where that is known: a backend that gives no answer may have a free lock.
    ///
    /// See "What does a call return at its wait limit?" in DESIGN.md.
    fn at_limit(&self, line: Heard, limit: Duration) -> LockError {
        let heard = if self.has_turn { Heard::Nothing } else { line };
        let fault = match heard {
            Heard::Fault(fault) if !self.holds() => *fault,
            Heard::Nothing if self.lost_turns > 0 => Fault::too_late(),
            Heard::Nothing if !self.holds() => {
                let backend = self.acquirer.backend().name();
                Fault::new(LockErrorKind::Unavailable, format!("{backend}: no answer yet"))
            }
            _ => return self.busy(limit),
        };
        let message = format!("{}; the wait limit of {limit:?} was reached", fault.message);
        Fault { message, ..fault }.about(&self.wanted.key, self.acquirer.reporting())
    }

    fn busy(&self, limit: Duration) -> LockError {
        let (key, waited) = (&self.wanted.key, self.waited());
        // A call that blocks reports it on its own thread and in its own span.
        if !self.wanted.caller_blocks {
            telemetry::wait_limit_reached(self.acquirer.reporting().show(key), waited);
        }
        LockError::wait_limit_reached(key.as_str(), limit, waited)
    }

    /// Whether a call of this locker holds the lock.
    fn holds(&self) -> bool {
        self.acquirer.leases(&self.wanted.key).iter().any(Lease::is_held)
    }

    fn waited(&self) -> Duration {
        self.acquirer.backend().now().since(self.start)
    }
}
