//! What a lease is at a moment: the decisions, without clock, requests or timers.
//!
//! See "What makes a lease lost?" in DESIGN.md.

use std::sync::Arc;
use std::time::Duration;

use crate::types::clock::Moment;
use crate::types::error::LockError;
use crate::types::options::Ttl;

/// One lease from its grant to its end. Every method is given the time, or needs none.
///
/// A loss is final: whatever an answer says that comes later, the body may not go on.
#[derive(Debug)]
pub(crate) struct LeaseState {
    /// From when on the deadline counts: the sending of the request that set it.
    counted_from: Moment,
    /// The holder's own deadline. Only an answered renewal moves it, and only forwards.
    valid_until: Moment,
    /// The end that `max_hold` sets; renewals do not move it.
    hold_until: Option<Moment>,
    end: Option<End>,
    /// Why the last renewal failed; nothing when it was answered.
    unrenewed: Option<Arc<LockError>>,
}

/// What a holder may think at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The lock is held, for so long at least.
    Held(Duration),
    /// `max_hold` is over: the body has to stop, and the lock is released then.
    ///
    /// See "Why is `max_hold` no loss?" in DESIGN.md.
    MaxHoldReached,
    Lost(Loss),
    /// The release has begun.
    Released,
}

/// Why a holder can no longer be sure that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The deadline passed, and no renewal was answered before it.
    Deadline,
    /// Nobody holds the lock: it expired or was deleted.
    Absent,
    /// Another holder has the lock.
    Taken,
    /// The process was forked, and the lock is its parent's. No state has this: it is known without one.
    Forked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Lost(Loss),
    Released,
}

impl LeaseState {
    /// A lease counts from the sending of its request, so it ends here before it does in the backend.
    pub(crate) fn new(since: Moment, ttl: Ttl, hold_until: Option<Moment>) -> Self {
        let valid_until = since.after(ttl.usable());
        Self { counted_from: since, valid_until, hold_until, end: None, unrenewed: None }
    }

    /// What holds now. A deadline that is found passed is a loss from then on.
    pub(crate) fn status(&mut self, now: Moment) -> Status {
        if self.end.is_none() && now >= self.valid_until {
            self.end = Some(End::Lost(Loss::Deadline));
        }
        match (self.end, self.hold_until) {
            (Some(End::Lost(loss)), _) => Status::Lost(loss),
            (Some(End::Released), _) => Status::Released,
            (None, Some(end)) if now >= end => Status::MaxHoldReached,
            (None, end) => {
                let end = end.map_or(self.valid_until, |end| end.min(self.valid_until));
                Status::Held(end.since(now))
            }
        }
    }

    /// Whether it is held, for one who only looks: a deadline that has passed is left for others to find.
    pub(crate) fn is_held(&self, now: Moment) -> bool {
        let may_go_on = self.hold_until.is_none_or(|end| now < end);
        self.end.is_none() && now < self.valid_until && may_go_on
    }

    /// A renewal that was sent then was answered now: the lock is this holder's for `ttl` from there.
    pub(crate) fn renewed(&mut self, sent: Moment, ttl: Ttl, now: Moment) {
        let valid_until = sent.after(ttl.usable());
        if !self.is_on(now) {
            return;
        }
        self.unrenewed = None;
        if valid_until > self.valid_until {
            (self.counted_from, self.valid_until) = (sent, valid_until);
        }
    }

    /// A renewal failed, which says nothing about the lock; a loss that was found before has its reason.
    pub(crate) fn unanswered(&mut self, cause: &Arc<LockError>) {
        if self.end.is_none() {
            self.unrenewed = Some(Arc::clone(cause));
        }
    }

    /// Why the last renewal failed, until one is answered.
    pub(crate) fn unrenewed(&self) -> Option<&Arc<LockError>> {
        self.unrenewed.as_ref()
    }

    /// How much of the lease has gone by, from its grant, or from what made it longer last.
    pub(crate) fn used(&self, now: Moment) -> f64 {
        let whole = self.valid_until.since(self.counted_from);
        now.since(self.counted_from).div_duration_f64(whole)
    }

    /// A renewal was refused: the lock is not this holder's any more.
    pub(crate) fn refused(&mut self, loss: Loss, now: Moment) {
        if self.is_on(now) {
            self.end = Some(End::Lost(loss));
        }
    }

    /// The release begins. What was lost before stays lost.
    pub(crate) fn release(&mut self, now: Moment) {
        if self.is_on(now) {
            self.end = Some(End::Released);
        }
    }

    /// The loss, as far as anybody has found one.
    pub(crate) fn loss(&self) -> Option<Loss> {
        match self.end {
            Some(End::Lost(loss)) => Some(loss),
            Some(End::Released) | None => None,
        }
    }

    fn is_on(&mut self, now: Moment) -> bool {
        matches!(self.status(now), Status::Held(_) | Status::MaxHoldReached)
    }
}

#[cfg(test)]
mod tests;
