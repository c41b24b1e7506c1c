//! Who has a lock.

use std::time::{Duration, SystemTime};

use crate::backend::{Held, Seen};
use crate::types::owner::{HolderId, LockValue, ProcessId, TokenParts};

/// The holder of a lock, as [`Locker::inspect`](crate::Locker::inspect) or a [listing](crate::admin) found it.
///
/// It never shows the owner token, which is enough to release the lock. No fencing token is here either: fence
/// counters belong to hash slots, and the server does not know a holder's token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    id: HolderId,
    kind: HolderKind,
    process: Option<ProcessId>,
    attempted_at: Option<SystemTime>,
    is_from_queue: bool,
    identity: Option<String>,
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
    /// [`is_wrong_type`](crate::LockError::is_wrong_type).
    NoLock,
}

impl Holder {
    /// The [request id](crate::RequestId) under which the lock was acquired; `None` when that was
    /// outside of any request, or by another library.
    ///
    /// It may be a client's text: escape it before a terminal or a page shows it.
    #[must_use]
    pub fn identity(&self) -> Option<&str> {
        self.identity.as_deref()
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
    #[must_use]
    pub fn id(&self) -> HolderId {
        self.id
    }

    /// What this is a holder of.
    #[must_use]
    pub fn kind(&self) -> HolderKind {
        self.kind
    }

    /// When the lock was asked for, by the clock of the holder's process; `None` where that is not known, as of
    /// another library's lock.
    ///
    /// For a lock that was acquired in one try, that is since when it is held. One that [came by the
    /// queue](Holder::is_from_queue) was asked for before it was waited for: so the time since then is the most that
    /// it can be held. Calls of one process may pass a lock on: it has this time until it leaves
    /// the process.
    #[must_use]
    pub fn attempted_at(&self) -> Option<SystemTime> {
        self.attempted_at
    }

    /// Whether the attempt was queued before it had the lock.
    #[must_use]
    pub fn is_from_queue(&self) -> bool {
        self.is_from_queue
    }

    /// Which process has the lock; `None` where that is not known. [`Admin::processes`](crate::admin::Admin::processes)
    /// says where it runs, if it is connected.
    #[must_use]
    pub fn process(&self) -> Option<ProcessId> {
        self.process
    }

    pub(crate) fn of(held: &Held) -> Self {
        Self::written(&held.owner, held.remaining)
    }

    pub(super) fn seen(seen: &Seen) -> Self {
        if let Some(owner) = &seen.owner {
            return Self::written(owner, seen.remaining);
        }
        let nothing = LockValue::new(Vec::new());
        Self { kind: HolderKind::NoLock, ..Self::written(&nothing, seen.remaining) }
    }

    fn written(owner: &LockValue, remaining: Option<Duration>) -> Self {
        let id = HolderId::of(owner);
        let Some(acquired) = TokenParts::parse(owner.text()) else {
            let kind = HolderKind::Foreign;
            let is_from_queue = false;
            let process = None;
            let attempted_at = None;
            let identity = None;
            return Self { id, kind, process, attempted_at, is_from_queue, identity, remaining };
        };
        let TokenParts { mark, process, attempted_at, is_from_queue, identity } = acquired;
        let process = Some(process);
        let kind = mark.map_or(HolderKind::Exclusive, |_| HolderKind::KeptByMinHold);
        let identity = identity.map(ToOwned::to_owned);
        Self { id, kind, process, attempted_at, is_from_queue, identity, remaining }
    }
}
