//! What operators need of a store, beside the [contract](Backend) that calls need.

use std::any::Any;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::check::{Report, Role};
use super::selection::Selection;
use crate::core::backend::{BackendContext, Fault, Release, Reply, Revocation};
use crate::core::memory::Memory;
use crate::core::naming::client_name::ClientName;
use crate::core::types::error::{LockError, LockErrorKind};
use crate::core::types::id::ProcessId;
use crate::core::types::key::LockKey;
use crate::core::types::owner::LockValue;
#[cfg(feature = "redis")]
use crate::redis::Redis;

pub(crate) type Checkup = Pin<Box<dyn Future<Output = Report> + Send>>;

/// The store of all locks, as operators see it; no method waits for a lock.
///
/// # Contract
/// - Only replies to `send` and `force` need a limit of the caller's; any other has its own.
/// - Only `force`, `send` and `advance` change anything. No other client waits for more than one short command at a
///   time.
/// - A message is about one owner token: no other hold of the same lock is touched. It may be lost, and may come twice.
///
/// # Cancel safety
/// A dropped `Reply` to `force`, `send` or `advance` may or may not have had its effect; any other changes nothing.
pub(crate) trait Operations: Send + Sync {
    /// The first page of a listing of all locks that are selected. A lock that is held from the first page to the last
    /// is on one of them at least.
    fn sweep(&self, selection: Selection) -> Reply<Page>;

    fn look(&self, key: LockKey) -> Reply<Option<Seen>>;

    fn queue(&self, key: LockKey) -> Reply<Vec<Queued>>;

    /// Receives a hint whenever a lock or its queue may have changed, at most twenty in a second; closed when nothing
    /// is reported any more. `None` if the store reports none to this user.
    fn changes(&self, _key: LockKey) -> Reply<Option<watch::Receiver<()>>> {
        Box::pin(ready(Ok(None)))
    }

    fn clients(&self) -> Reply<Vec<LockerConnection>>;

    /// How far the clock of the store is from this process's; `None` where both have the same.
    fn clock_difference(&self) -> Reply<Option<Duration>>;

    fn size(&self) -> Reply<u64>;

    /// Sends a message to the process that has the lock.
    ///
    /// See "How does a revoke request reach and stop a holder (pub/sub)?" in DESIGN.md.
    fn send(&self, revocation: Revocation) -> Reply<Audience>;

    /// Moves the queue entries of a process to the front of a queue; returns whether it has any there. In memory all
    /// entries are of one process.
    fn advance(&self, _key: LockKey, _process: ProcessId) -> Reply<bool> {
        Box::pin(ready(Ok(true)))
    }

    /// Ends the hold under a key whose owner is exactly this value, of this library or not, and hands the lock on as
    /// a release does.
    fn force(&self, key: LockKey, owner: Vec<u8>) -> Reply<Release>;

    /// Checks whether locks with this key prefix can work on this server for the given role. Touches no lock.
    fn check(&self, prefix: &str, role: Role) -> Checkup;
}

/// The store of a locker, as operators see it.
///
/// # Errors
/// When the store has nothing for operators, and when the locker was inherited from the process that this one was
/// forked from.
pub(crate) fn operations(context: &BackendContext) -> Result<Arc<dyn Operations>, LockError> {
    let backend: &dyn Any = &**context.backend_here()?;
    #[cfg(feature = "redis")]
    if let Some(redis) = backend.downcast_ref::<Redis>() {
        return Ok(Arc::new(redis.clone()));
    }
    if let Some(memory) = backend.downcast_ref::<Arc<Memory>>() {
        return Ok(Arc::new(Arc::clone(memory)));
    }
    let message = format!("{} has no functions for operators", context.backend.name());
    Err(LockError::new(LockErrorKind::NotConfigured, message))
}

pub(crate) struct Page {
    pub(crate) seen: Vec<Seen>,
    pub(crate) scanned: u64,
    /// Why one of several servers is missing.
    pub(crate) fault: Option<Fault>,
    /// Requests the next page; `None` at the end.
    pub(crate) rest: Option<Rest>,
}

pub(crate) type Rest = Box<dyn FnOnce() -> Reply<Page> + Send>;

#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) key: LockKey,
    /// What the holder wrote; `None` for data of another type, which are no lock.
    pub(crate) owner: Option<LockValue>,
    pub(crate) remaining: Option<Duration>,
    /// How many wait; a look at one lock counts the entries of the queue, whether anyone listens or not.
    pub(crate) queued: usize,
}

pub(crate) struct Queued {
    pub(crate) owner: String,
    pub(crate) is_listening: Option<bool>,
}

impl Queued {
    /// Whether it may be granted the lock; so may all if it is unknown who listens.
    pub(crate) fn waits(&self) -> bool {
        self.is_listening != Some(false)
    }
}

#[derive(Clone)]
pub(crate) struct LockerConnection {
    pub(crate) name: ClientName,
    pub(crate) address: Option<String>,
    pub(crate) age: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// The process listens; whether it has that lock is not known.
    Listens,
    Silence,
    /// A node of a cluster does not know who listens at the others.
    Unknown,
}
