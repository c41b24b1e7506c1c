//! The operators' side of locks: who holds which lock, who waits, and which processes there are.
//!
//! [`Locker::admin`](crate::Locker::admin) returns an [`Admin`] on every backend. The program `lockable` does the same
//! from a shell. A service without the feature `admin` is listed all the same, and its holders stop when an operator
//! asks them to.
//!
//! # Rights
//! An [`Admin`] opens its own connections at its first use, and writes nothing to do so. A user who may not lock can
//! therefore list locks, with a locker from [`connect_lazy`](crate::LockerBuilder::connect_lazy).
//!
#![doc = include_str!("../../../acl_operators.md")]
//!
//! Some rights are optional; the rest works without them:
//!
//! - `+select` is for a URL that names another database than 0, and `+asking` for slots that are moved to another
//!   node.
//! - Without `+client|list` the name of a process is unknown.
//! - Without `+pubsub|numsub` or `+pubsub|shardnumsub` it is unknown which waiters listen.
//! - Without `+time` it is unknown by how much the clocks differ.
//!
//! See "How does `CLIENT LIST` show which process holds a lock?" in DESIGN.md.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use self::changes::Changes;
pub use self::held::HeldLock;
pub use self::locks::Locks;
pub use self::process::Process;
pub use self::revoke::{Forced, Revoked};
pub use self::waiter::Waiter;
use crate::core::backend::{BackendContext, Fault};
use crate::core::naming::namespace::Namespace;
use crate::core::types::error::LockError;
pub use crate::core::types::id::{HolderId, IdError, ProcessId};
use crate::core::types::key::LockKey;
use crate::operators::contract::operations;

mod changes;
mod held;
mod locks;
mod pause;
mod process;
mod revoke;
mod waiter;

/// Lists the locks of a locker's prefix and the processes that use them, and stops holders.
///
/// Cheap to clone.
#[derive(Clone)]
pub struct Admin {
    context: Arc<BackendContext>,
    prefix: String,
    namespace: Namespace,
}

impl Admin {
    pub(crate) fn new(context: Arc<BackendContext>, prefix: String, namespace: Namespace) -> Self {
        Self { context, prefix, namespace }
    }

    /// Returns the locker's prefix, with which the keys of the locks begin.
    #[doc(hidden)]
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Lists all locks that have a holder, in no order.
    ///
    /// # Guarantees
    /// - A lock that is held from the first page to the last is listed, and no lock is listed twice.
    /// - Each command takes less than a millisecond; `KEYS` is never used. After each page the listing pauses for four
    ///   times as long as the page took, at most a second, so it takes at most a fifth of the server's time: about ten
    ///   seconds for a million keys.
    ///
    /// # What this does not guarantee
    /// - Each entry is a snapshot. If the lock changes hands while its page is read, its holder and its remaining time
    ///   may be of two holds.
    /// - A lock that is acquired or released during the listing, or whose slot moves to another node, may be missing.
    /// - Companion keys, and keys that no lock can have, are omitted.
    /// - Of a value of 1 KiB or more, which is another library's, only the beginning is read. A forced release compares
    ///   only that beginning.
    ///
    /// # Errors
    /// Each item may be an error; see [`Locks::next`].
    ///
    /// # Cancel safety
    /// Dropping the listing at any time is safe.
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// let _guard = locker.lock("order:7").acquire().await?;
    /// let _other = locker.lock("report:2026").acquire().await?;
    ///
    /// let mut locks = locker.admin().locks().matching("order:*");
    /// while let Some(lock) = locks.next().await.transpose()? {
    ///     let holder = lock.holder();
    ///     println!("{} {} {:?}", lock.name(), holder.id(), holder.process());
    ///     assert_eq!(lock.name(), "order:7");
    /// }
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub fn locks(&self) -> Locks {
        Locks::new(Arc::clone(&self.context), self.prefix.clone(), self.namespace.clone())
    }

    /// Returns the lock of this key with its holder, as a listing shows it; `None` when it has no holder.
    ///
    /// It needs fewer rights than [`Locker::inspect`](crate::Locker::inspect), and returns a [kind](crate::HolderKind)
    /// for data that is no lock. It reads the whole value.
    ///
    /// The permits of `export` are the locks `{export}#1`, `{export}#2` and so on. They share one queue.
    ///
    /// # What this does not guarantee
    /// In a cluster, the holder and the remaining time may be of two holds if the lock changes hands meanwhile.
    ///
    /// # Errors
    /// - [`is_unavailable`](LockError::is_unavailable) when the backend does not reply.
    /// - [`Refused`](crate::LockErrorKind::Refused) when the user may not read; see [the rights](self#rights).
    /// - [`InvalidKey`](crate::LockErrorKind::InvalidKey), before anything is sent.
    /// - [`NotConfigured`](crate::LockErrorKind::NotConfigured) [after a fork](crate::Locker#after-a-fork).
    ///
    /// # Cancel safety
    /// The call only reads, so dropping the future changes nothing.
    ///
    /// # Examples
    /// See [`processes`](Admin::processes).
    pub async fn holder(&self, key: impl AsRef<str>) -> Result<Option<HeldLock>, LockError> {
        let key = self.key(key.as_ref())?;
        let operations = operations(&self.context)?;
        let seen = operations.look(key.clone()).await;
        let seen = seen.map_err(|fault| fault.about(&key, &self.context.reporting))?;
        let Some(mut seen) = seen else { return Ok(None) };
        // A user who may not read the queue gets its length.
        if seen.queued > 0
            && let Ok(queue) = operations.queue(key).await
        {
            seen.queued = queue.iter().filter(|queued| queued.waits()).count();
        }
        Ok(Some(HeldLock::of(seen, &self.prefix, &self.context.reporting)))
    }

    /// Returns the queue of this key's lock, the next waiter first.
    ///
    /// # What this does not guarantee
    /// - An entry is a process. Calls that try once and skip are in no queue.
    /// - An entry stays for a while after its process has ended; [`is_listening`](Waiter::is_listening) is `false`
    ///   then.
    ///
    /// # Errors
    /// As [`holder`](Admin::holder).
    ///
    /// # Cancel safety
    /// As [`holder`](Admin::holder).
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// for waiter in locker.admin().queue("order:7").await? {
    ///     println!("{:?} since {:?}", waiter.process(), waiter.waiting_since());
    /// }
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn queue(&self, key: impl AsRef<str>) -> Result<Vec<Waiter>, LockError> {
        let key = self.key(key.as_ref())?;
        let queued = operations(&self.context)?.queue(key.clone()).await;
        let queued = queued.map_err(|fault| fault.about(&key, &self.context.reporting))?;
        Ok(queued.iter().map(Waiter::of).collect())
    }

    /// Returns reports of changes of this key's lock and its queue, over a connection of its own; `None` when the
    /// backend reports none.
    ///
    /// It needs the rights `+client|tracking` and `+client|caching`.
    ///
    /// # Errors
    /// As [`holder`](Admin::holder).
    ///
    /// # Cancel safety
    /// As [`holder`](Admin::holder).
    #[doc(hidden)]
    pub async fn changes(&self, key: impl AsRef<str>) -> Result<Option<Changes>, LockError> {
        let key = self.key(key.as_ref())?;
        let changes = operations(&self.context)?.changes(key.clone()).await;
        let changes = changes.map_err(|fault| fault.about(&key, &self.context.reporting))?;
        Ok(changes.map(Changes::new))
    }

    /// Returns the processes that are connected and lock, sorted by service and host.
    ///
    /// These processes run now. The call takes the server about 3 µs for each connection of any client.
    ///
    /// # What this does not guarantee
    /// - In a cluster, only the nodes that reply are included.
    /// - A process whose user may not name its connections is missing.
    /// - If a proxy shares connections among clients, a connection has the name of its last client.
    ///
    /// # Errors
    /// - [`Refused`](crate::LockErrorKind::Refused) when the user may not list connections, or the service hides them.
    ///   Listings of locks still work.
    /// - [`is_unavailable`](LockError::is_unavailable) when the backend does not reply.
    /// - [`NotConfigured`](crate::LockErrorKind::NotConfigured) [after a fork](crate::Locker#after-a-fork).
    ///
    /// # Cancel safety
    /// As [`holder`](Admin::holder).
    ///
    /// # Examples
    /// Where the holder of a lock runs:
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// # let _guard = locker.lock("order:7").acquire().await?;
    /// let admin = locker.admin();
    /// let processes = admin.processes().await?;
    /// if let Some(lock) = admin.holder("order:7").await? {
    ///     let of_holder = processes.iter().find(|it| Some(it.id()) == lock.holder().process());
    ///     match of_holder {
    ///         Some(process) => println!("{} on {}", process.service(), process.host()),
    ///         None => println!("not connected"),
    ///     }
    /// #   assert!(of_holder.is_some());
    /// }
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn processes(&self) -> Result<Vec<Process>, LockError> {
        let clients = operations(&self.context)?.clients().await;
        clients.map(Process::all_of).map_err(Fault::into_error)
    }

    /// Returns about how many keys a listing scans, of any kind, which determines how long it takes.
    ///
    /// In a cluster, only the nodes that reply are included.
    ///
    /// # Errors
    /// As [`processes`](Admin::processes).
    ///
    /// # Cancel safety
    /// As [`holder`](Admin::holder).
    #[doc(hidden)]
    pub async fn count(&self) -> Result<u64, LockError> {
        operations(&self.context)?.size().await.map_err(Fault::into_error)
    }

    /// Returns how far the server's clock is from that of this machine, in either direction; `None` in memory.
    ///
    /// In a cluster it is the greatest difference of all primaries. If it is large,
    /// [`Holder::held_since`](crate::Holder::held_since) and [`Waiter::waiting_since`] may be wrong, too: they come
    /// from clocks of other machines.
    ///
    /// # Errors
    /// As [`processes`](Admin::processes).
    ///
    /// # Cancel safety
    /// As [`holder`](Admin::holder).
    #[doc(hidden)]
    pub async fn clock_difference(&self) -> Result<Option<Duration>, LockError> {
        operations(&self.context)?.clock_difference().await.map_err(Fault::into_error)
    }

    fn key(&self, name: &str) -> Result<LockKey, LockError> {
        let key = self.namespace.held(&self.prefix, name);
        key.map_err(|error| self.context.reporting.redact(error))
    }
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin")
            .field("backend", &self.context.backend.name())
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Locker;

    fn is_sent<T: Send>(_: &T) {}

    #[test]
    fn bounds() {
        fn check<T: Send + Sync + Unpin + 'static>() {}
        fn of_listing<T: Send + Unpin + 'static>() {}
        check::<Admin>();
        check::<HeldLock>();
        check::<Changes>();
        check::<Process>();
        of_listing::<Locks>();
        let admin = Locker::in_memory().admin();
        is_sent(&(admin.holder("a"), admin.queue("a"), admin.processes(), admin.count()));
        is_sent(&admin.locks().next());
        is_sent(&admin.changes("a"));
    }

    #[tokio::test]
    async fn a_store_in_memory_reports_no_changes() {
        let admin = Locker::in_memory().admin();
        assert!(admin.changes("a").await.unwrap().is_none());
        assert!(admin.changes("").await.is_err());
    }

    #[tokio::test]
    async fn a_redacted_key_is_not_shown() {
        let locker = Locker::builder().url("memory://").redact_keys().connect().await.unwrap();
        let _guard = locker.lock("canary").acquire().await.unwrap();
        let lock = locker.admin().holder("canary").await.unwrap().unwrap();
        assert!(!format!("{lock:?}").contains("canary"), "{lock:?}");
        assert_eq!(lock.name(), "canary");
    }
}
