//! What operators see and do: who has which lock, who waits, and which processes there are.
//!
//! In the first minute of an incident the questions are: who has this lock, since when, who waits for it, and how is
//! it freed without two at work? An [`Admin`], which [`Locker::admin`](crate::Locker::admin) gives, answers them on
//! every backend. The program `lockable` does the same from a shell. A service needs the feature `admin` only to act as an
//! operator: its own locks are listed, and its holders stop when they are asked, without it.
//!
//! # Rights
//! An [`Admin`] opens connections of its own at its first use. They change nothing, so a user who may not lock can look,
//! with a locker that was made by [`connect_lazy`](crate::LockerBuilder::connect_lazy). Write your names and passwords,
//! your prefix in place of `disLock:`, and your namespace in place of `lockable`.
//!
#![doc = include_str!("../../acl_operators.md")]
//!
//! `+select` is for a URL that names another database than 0, and `+asking` for slots that are moved to another node.
//! Without `+client|list` no process is known by its name, without `+pubsub|numsub` or `+pubsub|shardnumsub` it is
//! unknown which waiters listen, and without `+time` how far the clocks differ; all the rest works.
//!
//! See "How does `CLIENT LIST` show which process holds a lock?" in DESIGN.md.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use self::held::HeldLock;
pub use self::locks::Locks;
pub use self::process::Process;
pub use self::revoke::{Forced, Revoke, Revoked};
pub use self::waiter::Waiter;
use crate::backend::{Fault, Link};
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::namespace::Namespace;
pub use crate::types::owner::{HolderId, IdError, ProcessId};

mod held;
mod locks;
mod process;
mod revoke;
mod waiter;

/// Looks at the locks of a locker's prefix, and at who uses them.
///
/// Cheap to clone.
#[derive(Clone)]
pub struct Admin {
    link: Arc<Link>,
    prefix: String,
    namespace: Namespace,
}

impl Admin {
    pub(crate) fn new(link: Arc<Link>, prefix: String, namespace: Namespace) -> Self {
        Self { link, prefix, namespace }
    }

    /// What the keys of the locks begin with: the locker's prefix.
    #[doc(hidden)]
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// All locks that have a holder, in no order.
    ///
    /// # Guarantees
    /// - A lock that is held from the first page to the last is listed, and no lock is listed twice.
    /// - Only plain commands that take less than a millisecond each: never `KEYS`. Between the pages is a pause of four
    ///   times what the page took, so a listing takes a fifth of the server's time at most. On a server with a
    ///   million keys it takes about ten seconds.
    ///
    /// # What this does not guarantee
    /// Each entry is a snapshot from when its page was read, and of a lock that changes hands meanwhile the holder and the time that it
    /// lasts may be of two holds. A lock that is acquired or released during the listing may be on it or not; so may
    /// one whose slot moves to another node of a cluster. Left out are keys that no lock can have, and keys with
    /// the names of companions. Of a value of 1 KiB or more, which is another library's, only the beginning is read, and
    /// compared when it is taken away.
    ///
    /// # Errors
    /// Each item may be one: see [`Locks::next`].
    ///
    /// # Cancel safety
    /// It may be dropped at any time.
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
        Locks::new(Arc::clone(&self.link), self.prefix.clone(), self.namespace.clone())
    }

    /// Who has the lock of this key, as a listing shows it; `None` when no one has it.
    ///
    /// It needs fewer rights than [`Locker::inspect`](crate::Locker::inspect), and says of data that are no lock what
    /// they are. It reads the whole value.
    ///
    /// # What this does not guarantee
    /// In a cluster it is several commands, so the holder and the remaining time may be of two holds where the lock
    /// changes hands meanwhile.
    ///
    /// # Errors
    /// - [`is_unavailable`](LockError::is_unavailable) when the backend gives no answer.
    /// - [`Refused`](crate::LockErrorKind::Refused) when the user may not look: see [the rights](self#rights).
    /// - [`InvalidKey`](crate::LockErrorKind::InvalidKey), before anything is sent.
    /// - [`NotConfigured`](crate::LockErrorKind::NotConfigured) [after a fork](crate::Locker#after-a-fork).
    ///
    /// # Cancel safety
    /// Nothing is changed.
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// let _guard = locker.lock("order:7").acquire().await?;
    ///
    /// let held = locker.admin().holder("order:7").await?.expect("it is held");
    /// println!("{} since {:?}", held.holder().id(), held.holder().held_since());
    /// assert!(locker.admin().holder("order:8").await?.is_none());
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn holder(&self, key: impl AsRef<str>) -> Result<Option<HeldLock>, LockError> {
        let key = self.key(key.as_ref())?;
        let seen = self.link.backend_here()?.look(key.clone()).await;
        let seen = seen.map_err(|fault| fault.about(&key, &self.link.reporting))?;
        Ok(seen.map(|seen| HeldLock::of(seen, &self.prefix, &self.link.reporting)))
    }

    /// Who waits for the lock of this key, the next one first.
    ///
    /// # What this does not guarantee
    /// An entry is a process, and calls that try once and skip are in no queue. An entry stays for a while when its
    /// process has ended; [`is_listening`](Waiter::is_listening) says so.
    ///
    /// # Errors
    /// As [`holder`](Admin::holder).
    ///
    /// # Cancel safety
    /// Nothing is changed.
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
        let queued = self.link.backend_here()?.queue(key.clone()).await;
        let queued = queued.map_err(|fault| fault.about(&key, &self.link.reporting))?;
        Ok(queued.iter().map(Waiter::of).collect())
    }

    /// The processes that are connected and lock, in the order of their services and hosts.
    ///
    /// A process has a name at the server from its first connection on, and loses it with its last: so this is what
    /// runs. It costs locks nothing; the server takes about 3 µs for each connection that it has, of all clients.
    ///
    /// # What this does not guarantee
    /// In a cluster it is those of the nodes that answer. A process whose user may not name its connections is missing.
    /// Where a proxy shares connections among clients, names are of the last one
    /// that came.
    ///
    /// # Errors
    /// - [`Refused`](crate::LockErrorKind::Refused) when the user may not list connections, or the service hides them.
    ///   The listing of locks works without.
    /// - [`is_unavailable`](LockError::is_unavailable) when the backend gives no answer.
    /// - [`NotConfigured`](crate::LockErrorKind::NotConfigured) [after a fork](crate::Locker#after-a-fork).
    ///
    /// # Cancel safety
    /// Nothing is changed.
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
        let clients = self.link.backend_here()?.clients().await;
        clients.map(Process::all_of).map_err(Fault::into_error)
    }

    /// About how many keys a listing goes through, of any kind: that says how long it takes. In a cluster it is those of
    /// the nodes that answer.
    ///
    /// # Errors
    /// As [`processes`](Admin::processes).
    ///
    /// # Cancel safety
    /// Nothing is changed.
    #[doc(hidden)]
    pub async fn count(&self) -> Result<u64, LockError> {
        self.link.backend_here()?.size().await.map_err(Fault::into_error)
    }

    /// How far the server's clock is from that of this machine, in either direction; `None` in memory. Of a cluster it
    /// is the greatest of all primaries.
    ///
    /// [`Holder::held_since`](crate::Holder::held_since) and [`Waiter::waiting_since`] are by the clocks of other machines: where this is much,
    /// those may differ as much.
    ///
    /// # Errors
    /// As [`processes`](Admin::processes).
    ///
    /// # Cancel safety
    /// Nothing is changed.
    #[doc(hidden)]
    pub async fn clock_difference(&self) -> Result<Option<Duration>, LockError> {
        self.link.backend_here()?.clock_difference().await.map_err(Fault::into_error)
    }

    fn key(&self, name: &str) -> Result<LockKey, LockError> {
        let key = self.namespace.key(&self.prefix, name);
        key.map_err(|error| self.link.reporting.redact(error))
    }
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin")
            .field("backend", &self.link.backend.name())
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
        check::<Process>();
        of_listing::<Locks>();
        let admin = Locker::in_memory().admin();
        is_sent(&(admin.holder("a"), admin.queue("a"), admin.processes(), admin.count()));
        is_sent(&admin.locks().next());
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
