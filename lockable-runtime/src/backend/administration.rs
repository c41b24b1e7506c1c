//! What operators ask a backend for, as the third part of its contract.

use std::future::ready;
use std::time::Duration;

use tokio::sync::watch;

use super::fault::{Fault, Reply};
use crate::types::client_name::ClientName;
use crate::types::key::LockKey;
use crate::types::owner::LockValue;
use crate::types::selection::Selection;

/// Looks at all locks of a store, and at who uses it; waits for no lock.
///
/// # Contract
/// - Replies need no limit of the caller's: each part of one has its own.
/// - Nothing is changed, and no other client waits for more than one short command at a time.
///
/// # Cancel safety
/// A dropped `Reply` changes nothing.
pub(crate) trait Administration {
    /// The first page of a listing of all locks that are selected. A lock that is held from the first page to the last
    /// is on one of them at least.
    fn sweep(&self, selection: Selection) -> Reply<Page>;

    /// What is under one key, if there is anything.
    fn look(&self, key: LockKey) -> Reply<Option<Seen>>;

    /// Who waits for a lock, the next one first.
    fn queue(&self, key: LockKey) -> Reply<Vec<Queued>>;

    /// Receives a value whenever a lock or its queue may have changed since the value before, or since this; closed when
    /// nothing is reported any more. `None` where the store reports none, at all or to this user.
    ///
    /// A report is a hint, and there are at most twenty in a second.
    fn changes(&self, _key: LockKey) -> Reply<Option<watch::Receiver<()>>> {
        Box::pin(ready(Ok(None)))
    }

    /// The connections of processes that lock; one process may have several.
    fn clients(&self) -> Reply<Vec<LockerConnection>>;

    /// How far the clock of the store is from this process's; `None` where both have the same.
    fn clock_difference(&self) -> Reply<Option<Duration>>;

    /// About how many keys a listing goes through.
    fn size(&self) -> Reply<u64>;
}

/// A part of a listing.
pub(crate) struct Page {
    pub(crate) seen: Vec<Seen>,
    /// About how many keys of any kind were scanned for it.
    pub(crate) scanned: u64,
    /// Why a server is missing of which there are several.
    pub(crate) fault: Option<Fault>,
    /// Asks for the next one; `None` at the end.
    pub(crate) rest: Option<Rest>,
}

pub(crate) type Rest = Box<dyn FnOnce() -> Reply<Page> + Send>;

/// What is under a key.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) key: LockKey,
    /// What the holder wrote; `None` for data of another type, which are no lock.
    pub(crate) owner: Option<LockValue>,
    /// How long it lasts; `None` is without an end.
    pub(crate) remaining: Option<Duration>,
    /// How many wait; a look at one lock counts the entries of the queue, whether anyone listens or not.
    pub(crate) queued: usize,
}

/// A place in a queue.
pub(crate) struct Queued {
    /// Its owner token.
    pub(crate) owner: String,
    /// Whether a message would reach its process; `None` where that is unknown.
    pub(crate) is_listening: Option<bool>,
}

impl Queued {
    /// Whether it may be granted the lock; all may where the server does not say who listens.
    pub(crate) fn waits(&self) -> bool {
        self.is_listening != Some(false)
    }
}

/// A connection of a process that locks.
#[derive(Clone)]
pub(crate) struct LockerConnection {
    pub(crate) name: ClientName,
    /// Where it comes from; `None` in memory.
    pub(crate) address: Option<String>,
    pub(crate) age: Duration,
}
