//! The states of an attempt: a place in the queue, or a turn.

use std::sync::Arc;
use std::time::Duration;

use super::actions::{Granted, Waiter};
use crate::backend::{Attempt, Fault, Grant};
use crate::types::clock::Moment;
use crate::types::options::Ttl;
use crate::types::token::FencingToken;

/// A turn may be passed on this often: the fencing tokens that a grant reserves, but for its own.
///
/// See "How long may one process keep its turn?" in DESIGN.md.
const PASSES: u64 = 16;

/// A turn may be passed on for this long; other processes wait meanwhile.
const LENGTH: Duration = Duration::from_millis(5);

/// What is known of a lock that a line waits for.
#[derive(Clone, Debug)]
pub(crate) enum Heard {
    /// No answer has come yet.
    Nothing,
    /// Another holder has it, or this line was granted it.
    Busy,
    /// The last question brought no answer, or an error.
    Fault(Box<Fault>),
}

/// An attempt that is in the backend's queue, or may be.
pub(super) struct Place {
    pub(super) attempt: Arc<Attempt>,
    /// How many questions about it are under way.
    pub(super) questions: u32,
    /// Whether a question was given up, which may reach the backend at any time.
    pub(super) is_unsure: bool,
    /// Whether it had the turn before, and is asked for again.
    pub(super) is_doubted: bool,
}

impl Place {
    pub(super) fn new(attempt: Arc<Attempt>) -> Self {
        Self { attempt, questions: 0, is_unsure: false, is_doubted: false }
    }

    pub(super) fn is_of(&self, attempt: &Attempt) -> bool {
        self.attempt.owner == attempt.owner
    }

    /// Counts a question about it. Turns begin and end under the same lock, so the end of a turn sees every
    /// question that may land behind its release.
    pub(super) fn ask(&mut self) -> Arc<Attempt> {
        self.questions += 1;
        Arc::clone(&self.attempt)
    }

    /// One of its questions has ended.
    pub(super) fn question_ends(&mut self, is_answered: bool) {
        debug_assert!(self.questions > 0, "a question ends that did not begin");
        self.questions = self.questions.saturating_sub(1);
        self.is_unsure |= !is_answered && self.attempt.sent_at().is_some();
    }

    /// Whether a question may reach the backend behind a request that is sent now.
    pub(super) fn may_be_overtaken(&self) -> bool {
        self.questions > 0 || self.is_unsure
    }
}

/// An attempt that was granted, until its release was answered.
pub(super) struct Turn {
    pub(super) place: Place,
    pub(super) stage: Stage,
    /// The first of its fencing tokens.
    fence: u64,
    pub(super) passes: u64,
    began: Moment,
    /// From when on the grant counts, where that is known.
    since: Option<Moment>,
    ttl: Ttl,
}

/// What becomes of a turn now.
pub(super) enum Stage {
    /// The call of this number has it, or is about to receive it.
    Given { to: u64, is_fair: bool },
    /// Its release is under way.
    Ending,
}

impl Stage {
    pub(super) fn given_to<C>(waiter: &Waiter<C>) -> Self {
        Self::Given { to: waiter.number, is_fair: waiter.is_fair }
    }
}

impl Turn {
    pub(super) fn new(place: Place, grant: &Grant, stage: Stage, now: Moment) -> Self {
        debug_assert!(place.attempt.owner == grant.owner, "the grant is another's");
        let counts = place.attempt.sent_at().is_some_and(|sent| sent >= grant.counts_from);
        Self {
            place,
            stage,
            fence: grant.fence,
            passes: 0,
            began: now,
            since: grant.since.filter(|_| counts),
            ttl: grant.ttl,
        }
    }

    pub(super) fn is_given_to(&self, number: u64) -> bool {
        matches!(self.stage, Stage::Given { to, .. } if to == number)
    }

    /// Whether the next call may have the lock without a question to the backend.
    pub(super) fn may_be_passed(&self, next_is_fair: bool, now: Moment) -> bool {
        let is_held = self.since.is_some_and(|since| now < since.after(self.ttl.usable()));
        let may_be_shared = matches!(self.stage, Stage::Given { is_fair: false, .. });
        let is_short = self.passes < PASSES && now.since(self.began) < LENGTH;
        is_held && may_be_shared && !next_is_fair && is_short
    }

    /// What the call that has it is given.
    pub(super) fn granted(&self, is_confirmed: bool) -> Granted {
        debug_assert!(self.passes <= PASSES, "no fencing token is reserved for this pass");
        Granted {
            attempt: Arc::clone(&self.place.attempt),
            fencing_token: FencingToken::new(self.fence.saturating_add(self.passes)),
            since: self.since,
            ttl: self.ttl,
            is_confirmed,
            is_passed_on: self.passes > 0,
        }
    }
}
