//! Who has a lock.

use std::time::{Duration, SystemTime};

use crate::backend::Held;
use crate::backend::Seen;
use crate::types::owner::{HolderId, LockValue, ProcessId, TokenParts};

/// The holder of a lock, as [`Locker::inspect`](crate::Locker::inspect) or a listing found it.
///
/// It never shows the owner token, which is enough to release the lock. No fencing token is here either: fence
/// counters belong to hash slots, and the server does not know a holder's token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    id: HolderId,
    kind: HolderKind,
    process: Option<ProcessId>,
    held_since: Option<HeldSince>,
    request_id: Option<String>,
    remaining: Option<Duration>,
}

/// What is under the key of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HolderKind {
    /// A holder that excludes all others.
    Exclusive,
    /// No holder any more: the lock was released, and stays taken until its `min_hold` is over.
    KeptByMinHold,
    /// A value that another library wrote, and that keeps the lock taken all the same.
    Foreign,
    /// Data of another type, which are no lock: calls for the lock fail with
    /// [`WrongType`](crate::LockErrorKind::WrongType).
    NoLock,
}

/// Since when a lock is held, by the clock of the holder's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum HeldSince {
    /// Since then: it was acquired in one try.
    At(SystemTime),
    /// Not before then, so for that long at most: it came by the queue, and this is when its call began to wait.
    NotBefore(SystemTime),
}

impl HeldSince {
    /// The earliest time since when it can be held.
    #[must_use]
    pub fn earliest(self) -> SystemTime {
        match self {
            Self::At(time) | Self::NotBefore(time) => time,
        }
    }
}

impl Holder {
    /// The [request id](crate::RequestId) under which the lock was acquired; `None` when that was
    /// outside of any request, or by another library.
    ///
    /// It may be a client's text: escape it before a terminal or a page shows it.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// How long the lock lasts by the backend's clock; `None` is without an end, which another
    /// program must have set.
    ///
    /// A lock that was released before its `min_hold` was over has its last holder until then.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.remaining
    }

    /// Which hold this is: the same as long as the same acquisition has the lock.
    #[cfg(feature = "admin")]
    #[must_use]
    pub fn id(&self) -> HolderId {
        self.id
    }

    /// What this is a holder of.
    #[must_use]
    pub fn kind(&self) -> HolderKind {
        self.kind
    }

    /// Since when it is held, by the clock of the holder's process; `None` where that is not known, as of another
    /// library's lock.
    ///
    /// Calls of one process may pass a lock on: it has this time until it leaves the process.
    #[must_use]
    pub fn held_since(&self) -> Option<HeldSince> {
        self.held_since
    }

    /// Which process has the lock; `None` where that is not known. [`Admin::processes`](crate::admin::Admin::processes)
    /// says where it runs, if it is connected.
    #[cfg(feature = "admin")]
    #[must_use]
    pub fn process(&self) -> Option<ProcessId> {
        self.process
    }

    pub(crate) fn of(held: &Held) -> Self {
        Self::written(&held.owner, held.remaining)
    }

    pub(crate) fn seen(seen: &Seen) -> Self {
        if let Some(owner) = &seen.owner {
            return Self::written(owner, seen.remaining);
        }
        let nothing = LockValue::new(Vec::new());
        Self { kind: HolderKind::NoLock, ..Self::written(&nothing, seen.remaining) }
    }

    fn written(owner: &LockValue, remaining: Option<Duration>) -> Self {
        let foreign = Self {
            id: HolderId::of(owner),
            kind: HolderKind::Foreign,
            process: None,
            held_since: None,
            request_id: None,
            remaining,
        };
        let Some(token) = TokenParts::parse(owner.text()) else { return foreign };
        let since = if token.is_from_queue { HeldSince::NotBefore } else { HeldSince::At };
        Self {
            kind: token.mark.map_or(HolderKind::Exclusive, |_| HolderKind::KeptByMinHold),
            process: Some(token.process),
            held_since: token.attempted_at.map(since),
            request_id: token.identity.map(ToOwned::to_owned),
            ..foreign
        }
    }
}
