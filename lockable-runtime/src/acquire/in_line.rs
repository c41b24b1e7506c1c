//! A call that waits in the line of its process, and what it says at its limit.

use std::pin::pin;
use std::time::Duration;

use tracing::Instrument;

use super::{Acquirer, NoTurn, Wanted};
use crate::backend::Fault;
use crate::clock::{Moment, within};
use crate::error::{LockError, LockErrorKind};
use crate::guard::LockGuard;
use crate::lease::Lease;
use crate::telemetry::{self, Waiting};
use crate::waiters::{Heard, Newcomer};

/// A call whose turns ended so often before it could use them has too short a lease for its link. One
/// turn may be lost where a process stands still, and hardly five of one call.
const LOST_TURNS: u32 = 5;

/// A call that waits in line.
pub(super) struct InLine<'a> {
    acquirer: &'a Acquirer,
    wanted: &'a Wanted,
    /// When the call began: its limit counts from here.
    start: Moment,
    /// What the call itself knows of the lock.
    heard: Heard,
    /// How many turns ended before the call could use them.
    lost_turns: u32,
}

impl<'a> InLine<'a> {
    pub(super) fn new(
        acquirer: &'a Acquirer,
        wanted: &'a Wanted,
        start: Moment,
        found_busy: bool,
    ) -> Self {
        let heard = if found_busy { Heard::Busy } else { Heard::Nothing };
        Self { acquirer, wanted, start, heard, lost_turns: 0 }
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
        if rest.is_zero() {
            return Err(self.at_limit(acquirer.waiters.heard(key), limit));
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
        Err(self.at_limit(heard, limit))
    }

    /// Waits for a turn that lasts until the call has it.
    async fn turns(&mut self) -> Result<LockGuard, LockError> {
        let (acquirer, wanted) = (self.acquirer, self.wanted);
        let waiting = Waiting::start(acquirer.backend(), acquirer.reporting().show(&wanted.key));
        // Kept from turn to turn: a call that lost one has its old place.
        let number = acquirer.waiters.number();
        while self.lost_turns < LOST_TURNS {
            let turn = acquirer.waiters.turn(&wanted.key, self.newcomer(number));
            let turn = turn.instrument(waiting.span()).await?;
            match acquirer.begin(turn, wanted, &waiting).await {
                Ok(guard) => {
                    acquirer.backend().served(&wanted.key);
                    return Ok(guard);
                }
                Err(NoTurn::Gone) => self.lost_turns += 1,
                Err(NoTurn::Fault(fault)) => self.heard = Heard::Fault(fault),
            }
        }
        Err(LockError::too_late(wanted.key.as_str()))
    }

    fn newcomer(&self, number: u64) -> Newcomer {
        let Wanted { terms, identity, .. } = self.wanted;
        Newcomer {
            number,
            ttl: terms.ttl,
            is_fair: terms.fair,
            identity: identity.clone(),
            found_busy: matches!(self.heard, Heard::Busy) && self.lost_turns == 0,
        }
    }

    /// Busy only where that is known: a backend that gives no answer may have a free lock.
    fn at_limit(&self, line: Heard, limit: Duration) -> LockError {
        let key = self.wanted.key.as_str();
        let is_silent = matches!(line, Heard::Nothing);
        let heard = if is_silent { self.heard.clone() } else { line };
        match heard {
            _ if self.lost_turns > 1 => LockError::too_late(key),
            _ if self.lost_turns == 1 && is_silent => LockError::too_late(key),
            Heard::Fault(fault) if !self.holds() => {
                let message = format!("{}; the wait limit of {limit:?} was reached", fault.message);
                let fault = Fault { message, ..fault };
                self.acquirer.reporting().fault(fault, &self.wanted.key)
            }
            Heard::Nothing if !self.holds() => {
                let backend = self.acquirer.backend().name();
                let message = format!("{backend}: no answer within the wait limit of {limit:?}");
                LockError::new(LockErrorKind::Unavailable, message).with_key(key)
            }
            _ => self.busy(limit),
        }
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
