//! What makes a holder: an answer to a request of its own process, and nothing else.
//!
//! A [`Lease`](crate::core::lease::Lease) is made of a [`Grant`] alone, and a grant of an answer: in the few places
//! that read one. A message is neither.
//!
//! See "On which code does safety rest, and why can the rest not break it?" in DESIGN.md.

use std::sync::Arc;

use super::attempt::Attempt;
use super::epochs::Epoch;
use crate::core::process::clock::Moment;
use crate::core::types::key::LockKey;
use crate::core::types::options::Ttl;
use crate::core::types::token::FencingToken;

#[derive(Clone)]
pub(crate) struct Grant {
    fence: Reserved,
    since: Moment,
    ttl: Ttl,
    /// Boxed, because every grant has the space for it and few are of one.
    permit: Option<Box<LockKey>>,
    /// Set if the server can be left for another one, which may not know the grant.
    epoch: Option<Arc<Epoch>>,
}

impl Grant {
    /// The backend's answer to a request of the attempt that was sent at that moment, or later. From its execution on
    /// the lock lasts for the attempt's TTL, and the fencing tokens were counted while it was the attempt's.
    pub(crate) fn answered(attempt: &Attempt, fence: Reserved, sent: Moment) -> Self {
        Self { fence, since: sent, ttl: attempt.ttl, permit: None, epoch: None }
    }

    pub(crate) fn of_permit(self, permit: Option<LockKey>) -> Self {
        Self { permit: permit.map(Box::new), ..self }
    }

    /// The grant is worth nothing once `epoch` is over.
    pub(crate) fn of_epoch(self, epoch: Option<Arc<Epoch>>) -> Self {
        Self { epoch, ..self }
    }

    /// The grant for the next call of the process, with the next reserved fencing token; `None` if these are used up.
    pub(crate) fn pass(&self) -> Option<Self> {
        let passes = self.fence.passes.checked_sub(1)?;
        let fence = Reserved { first: self.fence.first.saturating_add(1), passes };
        Some(Self { fence, ..self.clone() })
    }

    pub(crate) fn holds(&self, ttl: Ttl, now: Moment) -> bool {
        let is_over = self.epoch.as_ref().is_some_and(|epoch| epoch.is_over());
        self.lasts(ttl) && now < self.since.after(ttl.usable()) && !is_over
    }

    pub(crate) fn lasts(&self, ttl: Ttl) -> bool {
        ttl <= self.ttl
    }

    pub(crate) fn fencing_token(&self) -> FencingToken {
        FencingToken::new(self.fence.first)
    }

    pub(crate) fn since(&self) -> Moment {
        self.since
    }

    pub(crate) fn permit(&self) -> Option<&LockKey> {
        self.permit.as_deref()
    }

    #[cfg(any(lockable_internals, test))]
    pub(crate) fn fence(&self) -> Reserved {
        self.fence
    }
}

/// The fencing tokens that are reserved for a grant: one for itself, and one for each pass.
///
/// See "Why do fencing tokens rise from grant to grant?" in DESIGN.md.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reserved {
    pub(crate) first: u64,
    pub(crate) passes: u64,
}

impl Reserved {
    /// How often a turn may be passed on, if the fence counter was not ahead of the time.
    ///
    /// See "How many passes does a turn have, and what does `fair` change?" in DESIGN.md.
    pub(crate) const PASSES: u64 = 16;

    pub(crate) fn single(first: u64) -> Self {
        Self { first, passes: 0 }
    }

    pub(crate) fn turn(first: u64) -> Self {
        Self { first, passes: Self::PASSES }
    }

    /// What a script reserved at that time. If the fence counter was ahead, it has reserved a single token.
    pub(crate) fn at(first: u64, time: u64) -> Self {
        if first > time { Self::single(first) } else { Self::turn(first) }
    }

    #[cfg(any(lockable_internals, test))]
    pub(crate) fn last(self) -> u64 {
        self.first.saturating_add(self.passes)
    }
}
