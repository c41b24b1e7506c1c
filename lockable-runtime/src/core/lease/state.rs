//! What a lease is at a moment: the decisions, without clock, requests or timers.
//!
//! A lease is valid until its grant, or its last answered renewal, was sent, plus its TTL, less an allowance for clock
//! drift: so it ends here before it does in the backend. Only the answer to a renewal moves that deadline, and only
//! forwards. `max_hold` is a second deadline, which no renewal moves. A lease ends once: by its release, or by a loss:
//! `valid_until` has passed, an operator has forced the release, or an answer says that the lock is another holder's or
//! no one's. Nothing that is learned later changes that, because the body may have stopped. After a request to stop, or
//! the end of `max_hold`, the body stops too, but the lock is held until its release. The guard reads the status right
//! before each poll of the body, and stops the body unless it is [`Held`](Status::Held).
//!
//! See "What makes a lease lost, and why is the end of `max_hold` no loss?" in DESIGN.md. See "What has to be believed,
//! and what does a lease promise then?" in DESIGN.md.

use std::sync::Arc;
use std::time::Duration;

use super::loss::Loss;
use crate::core::process::clock::Moment;
use crate::core::types::error::LockError;
use crate::core::types::options::Ttl;
use crate::core::types::reason::Reason;

#[derive(Debug)]
pub(crate) struct LeaseState {
    /// The sending of the request that set the deadline.
    pub(super) counted_from: Moment,
    /// The sending of the latest request whose reply confirmed that the lock is held.
    confirmed_at: Moment,
    valid_until: Moment,
    hold_until: Option<Moment>,
    is_revoked: bool,
    /// Why an operator asked the holder to stop, or took the lock away.
    pub(super) reason: Option<Reason>,
    /// Whether a ticket may have the lock: then a refused renewal is no loss.
    pub(super) is_passing: bool,
    end: Option<Status>,
    pub(super) unrenewed: Option<Arc<LockError>>,
}

/// What a holder may rely on at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Held(Duration),
    /// The body has to stop, and the lock is released then.
    MaxHoldReached,
    /// As after `max_hold`.
    ///
    /// See "How does a revoke request reach and stop a holder (pub/sub)?" in DESIGN.md.
    Revoked,
    Lost(Loss),
    Released,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseEnd {
    /// It is near once this has passed.
    Far(Duration),
    Near(Duration),
    /// The lease is not [`Held`](Status::Held) any more.
    Over(Status),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) status: Status,
    pub(crate) at: Moment,
    pub(crate) used: f64,
    pub(crate) is_revoked: bool,
}

impl LeaseState {
    pub(crate) fn new(since: Moment, ttl: Ttl, hold_until: Option<Moment>) -> Self {
        let valid_until = since.after(ttl.usable());
        Self {
            counted_from: since,
            confirmed_at: since,
            valid_until,
            hold_until,
            is_revoked: false,
            reason: None,
            is_passing: false,
            end: None,
            unrenewed: None,
        }
    }

    /// The status now; a deadline that has passed is a loss from then on.
    pub(crate) fn status(&mut self, now: Moment) -> Status {
        let status = self.look(now);
        if matches!(status, Status::Lost(_)) {
            self.end = Some(status);
        }
        status
    }

    /// As [`status`](Self::status), but notes no loss that it finds.
    pub(crate) fn look(&self, now: Moment) -> Status {
        match (self.end, self.hold_until) {
            (Some(end), _) => end,
            (None, _) if now >= self.valid_until => Status::Lost(Loss::Deadline),
            (None, _) if self.is_revoked => Status::Revoked,
            (None, Some(end)) if now >= end => Status::MaxHoldReached,
            (None, end) => {
                Status::Held(end.unwrap_or(self.valid_until).min(self.valid_until).since(now))
            }
        }
    }

    /// Near is at most `of_deadline` before `valid_until`, or `of_hold` before the end that `max_hold` sets.
    pub(crate) fn ending(
        &mut self,
        of_deadline: Duration,
        of_hold: Duration,
        now: Moment,
    ) -> LeaseEnd {
        let status = self.status(now);
        if !matches!(status, Status::Held(_)) {
            return LeaseEnd::Over(status);
        }
        let hold = self.hold_until.map(|end| (end.since(now), of_hold));
        let ends = hold.into_iter().chain([(self.valid_until.since(now), of_deadline)]);
        let near = ends.clone().filter(|(left, least)| left <= least).map(|(left, _)| left).min();
        let wait = ends.map(|(left, least)| left.saturating_sub(least)).min();
        near.map_or_else(|| LeaseEnd::Far(wait.unwrap_or_default()), LeaseEnd::Near)
    }

    pub(crate) fn hold_until(&mut self, end: Option<Moment>) {
        self.hold_until = end;
    }

    pub(crate) fn is_older(&self, age: Duration, now: Moment) -> bool {
        now.since(self.counted_from) >= age
    }

    pub(crate) fn confirmed(&mut self, sent: Moment) {
        self.confirmed_at = sent.max(self.confirmed_at);
    }

    pub(crate) fn is_confirmed(&self, now: Moment, recently: Duration) -> bool {
        self.is_holding(now) && now.since(self.confirmed_at) < recently
    }

    pub(crate) fn is_holding(&self, now: Moment) -> bool {
        is_holding(self.look(now))
    }

    /// Whether renewals may make it longer: also for a holder that was asked to stop and has not.
    pub(crate) fn may_renew(&mut self, now: Moment) -> bool {
        match self.status(now) {
            Status::Held(_) => true,
            Status::Revoked => self.hold_until.is_none_or(|end| now < end),
            Status::MaxHoldReached | Status::Lost(_) | Status::Released => false,
        }
    }

    pub(crate) fn renewed(&mut self, sent: Moment, ttl: Ttl, now: Moment) {
        let valid_until = sent.after(ttl.usable());
        if !self.is_on(now) {
            return;
        }
        self.unrenewed = None;
        debug_assert!(sent <= now, "a renewal was answered before it was sent");
        if valid_until > self.valid_until {
            (self.counted_from, self.valid_until) = (sent, valid_until);
        }
    }

    /// A renewal failed, which says nothing about the lock.
    pub(crate) fn unanswered(&mut self, cause: &Arc<LockError>) {
        if self.end.is_none() {
            self.unrenewed = Some(Arc::clone(cause));
        }
    }

    pub(crate) fn used(&self, now: Moment) -> f64 {
        let whole = self.valid_until.since(self.counted_from);
        now.since(self.counted_from).div_duration_f64(whole)
    }

    pub(crate) fn refused(&mut self, loss: Loss, now: Moment) {
        if self.is_on(now) && !self.is_passing {
            self.end = Some(Status::Lost(loss));
        }
    }

    /// Returns whether the request to stop is news. What has ended or was requested before stays as it is.
    pub(crate) fn revoke(&mut self, reason: &Reason, now: Moment) -> bool {
        let is_news = matches!(self.status(now), Status::Held(_));
        if is_news {
            self.is_revoked = true;
            self.reason = Some(reason.clone());
        }
        is_news
    }

    pub(crate) fn force(&mut self, reason: &Reason, now: Moment) {
        if self.is_on(now) {
            self.reason = Some(reason.clone());
            self.end = Some(Status::Lost(Loss::Forced));
        }
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.is_revoked
    }

    /// What was lost before stays lost.
    pub(crate) fn release(&mut self, now: Moment) {
        if self.is_on(now) {
            self.end = Some(Status::Released);
        }
    }

    pub(crate) fn loss(&self) -> Option<Loss> {
        if let Some(Status::Lost(loss)) = self.end { Some(loss) } else { None }
    }

    fn is_on(&mut self, now: Moment) -> bool {
        is_holding(self.status(now))
    }
}

fn is_holding(status: Status) -> bool {
    matches!(status, Status::Held(_) | Status::MaxHoldReached | Status::Revoked)
}

#[cfg(test)]
mod tests;
