//! Who has a lock.

use std::time::{Duration, SystemTime};

use crate::core::process::utc::utc;
use crate::core::request_id::RequestId;
use crate::core::types::id::{HolderId, ProcessId};
use crate::core::types::owner::{Held, LockValue, Mark, TokenParts};
use crate::core::types::pause::Pause;
use crate::core::types::redact::DisplayKey;

/// The holder of a lock, as [`Locker::inspect`](crate::Locker::inspect) or a listing found it.
///
/// It shows no owner token, because that is enough to release the lock, and no fencing token, because the server does
/// not know a holder's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    id: HolderId,
    kind: HolderKind,
    process: Option<ProcessId>,
    held_since: Option<HeldSince>,
    request_id: Option<String>,
    pause: Option<Pause>,
    remaining: Option<Duration>,
}

/// The kind of value under the key of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HolderKind {
    /// A holder that excludes all others.
    Exclusive,
    /// A lock without a holder: it was released, and its `min_hold` keeps it taken.
    KeptByMinHold,
    /// A lock without a holder: a `once` call ended well, and no other one runs until the end of its period.
    Done,
    /// A lock on its way to another process: a [`Ticket`](crate::Ticket) has it, until it is redeemed or its time is
    /// over.
    Ticket,
    /// A lock without a holder: an operator keeps it taken for a time, so that nothing runs under it.
    Paused,
    /// A value that another library wrote, which keeps the lock taken.
    Foreign,
    /// Data that is no lock: calls for the lock fail with [`WrongType`](crate::LockErrorKind::WrongType).
    NoLock,
}

/// The start of a hold, by the clock of the holder's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum HeldSince {
    /// The start itself: the lock was acquired in one try.
    At(SystemTime),
    /// A lower bound of the start: the lock came by the queue, and its call began to wait then.
    NotBefore(SystemTime),
}

impl HeldSince {
    /// Returns the earliest possible start of the hold.
    #[must_use]
    pub fn earliest(self) -> SystemTime {
        match self {
            Self::At(time) | Self::NotBefore(time) => time,
        }
    }
}

impl Holder {
    /// Returns the [request id](crate::RequestId) under which the lock was acquired, if it has one.
    ///
    /// It may be a client's text: escape it before a terminal or a page shows it.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// Returns why the lock is [paused](HolderKind::Paused), as the operator wrote it; `None` if the lock is not
    /// paused.
    ///
    /// It is one line of at most 200 characters, without control characters, and may be empty.
    #[must_use]
    pub fn pause_reason(&self) -> Option<&str> {
        self.pause.as_ref().map(Pause::reason)
    }

    /// Returns how long the lock lasts by the backend's clock; `None` for another program's lock without an end.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.remaining
    }

    /// Returns the id of this hold, by which an operator names it.
    #[cfg(feature = "admin")]
    #[must_use]
    pub fn id(&self) -> HolderId {
        self.id
    }

    /// Returns the kind of value under the lock's key.
    #[must_use]
    pub fn kind(&self) -> HolderKind {
        self.kind
    }

    /// Returns the start of the hold, by the clock of the holder's process; `None` if it is unknown.
    ///
    /// Calls of one process may pass a lock on: the start stays the same until the lock leaves the process.
    #[must_use]
    pub fn held_since(&self) -> Option<HeldSince> {
        self.held_since
    }

    /// Returns the process that has the lock, or had it last if its `min_hold` or `once` keeps it taken; `None` if that
    /// is unknown, and for a ticket or a pause.
    ///
    /// [`Admin::processes`](crate::admin::Admin::processes) shows where it runs, if it is connected.
    #[cfg(feature = "admin")]
    #[must_use]
    pub fn process(&self) -> Option<ProcessId> {
        self.process
    }

    /// What has the lock, and for how much longer, in words that may be shown beside its key.
    pub(crate) fn words(&self, key: DisplayKey<'_>) -> String {
        let what = match self.kind {
            HolderKind::Exclusive => "another holder has the lock",
            HolderKind::KeptByMinHold => "the lock was released, and its `min_hold` keeps it taken",
            HolderKind::Done => "a call with `once` ended well, and keeps the lock taken",
            HolderKind::Ticket => "a ticket has the lock, which is on its way to another process",
            HolderKind::Paused => return self.pause.iter().map(|pause| pause.words(key)).collect(),
            HolderKind::Foreign => "another program has the lock",
            HolderKind::NoLock => "the key holds data that is no lock",
        };
        let rest = match (self.kind, self.remaining) {
            (HolderKind::Done, _) => self.until(),
            (_, Some(rest)) => format!(", for another {rest:.0?}"),
            (_, None) => String::new(),
        };
        format!("{what}{rest}")
    }

    /// The end, by the clock of this machine, as the times of its other events are.
    pub(crate) fn until(&self) -> String {
        let end = self.remaining.and_then(|rest| SystemTime::now().checked_add(rest));
        end.map(|end| format!(" until {}", utc(end))).unwrap_or_default()
    }

    /// Whether it is a pause, a ticket or a run that is done: a call logs once that it waits for one of these, because
    /// only an operator changes when they end.
    pub(crate) fn ends_by_itself(&self) -> bool {
        matches!(self.kind, HolderKind::Paused | HolderKind::Ticket | HolderKind::Done)
    }

    /// Whether the holder is of this process, or of the request that the call belongs to: a call that waits for it may
    /// wait for itself.
    pub(crate) fn is_own(&self, request_id: Option<&RequestId>) -> bool {
        let is_of_request = self
            .request_id
            .as_deref()
            .is_some_and(|id| request_id.is_some_and(|own| own.as_str() == id));
        let is_of_process = self
            .process
            .is_some_and(|process| ProcessId::current().is_ok_and(|own| own == process));
        self.kind == HolderKind::Exclusive && (is_of_request || is_of_process)
    }

    pub(crate) fn of(held: &Held) -> Self {
        Self::written(&held.owner, held.remaining)
    }

    /// What a listing has seen; without an owner it is data of another type.
    pub(crate) fn seen(owner: Option<&LockValue>, remaining: Option<Duration>) -> Self {
        if let Some(owner) = owner {
            return Self::written(owner, remaining);
        }
        let nothing = LockValue::new(Vec::new());
        Self { kind: HolderKind::NoLock, ..Self::written(&nothing, remaining) }
    }

    fn written(owner: &LockValue, remaining: Option<Duration>) -> Self {
        let foreign = Self {
            id: owner.id(),
            kind: HolderKind::Foreign,
            process: None,
            held_since: None,
            request_id: None,
            pause: None,
            remaining,
        };
        let Some(token) = TokenParts::parse(owner.text()) else { return foreign };
        let since = if token.is_from_queue { HeldSince::NotBefore } else { HeldSince::At };
        let is_of_none = matches!(token.mark, Some(Mark::Ticket | Mark::Paused));
        let identity = token.identity.filter(|_| token.mark != Some(Mark::Paused));
        Self {
            kind: match token.mark {
                None => HolderKind::Exclusive,
                Some(Mark::Ticket) => HolderKind::Ticket,
                Some(Mark::Paused) => HolderKind::Paused,
                Some(_) if token.is_done() => HolderKind::Done,
                Some(_) => HolderKind::KeptByMinHold,
            },
            process: (!is_of_none).then_some(token.process),
            held_since: token.attempted_at.map(since),
            request_id: identity.map(ToOwned::to_owned),
            pause: Pause::of(owner),
            ..foreign
        }
    }
}
