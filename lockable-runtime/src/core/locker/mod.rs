//! The public entry points: a locker, its builder, and the request for one lock.

use std::fmt;
use std::sync::Arc;

pub use self::builder::LockerBuilder;
#[cfg(lockable_internals)]
pub use self::builder::rechecks_later;
use crate::core::acquire::Acquirer;
use crate::core::acquire::inspect::inspect;
use crate::core::backend::BackendContext;
use crate::core::holder::Holder;
use crate::core::locker::request::LockRequest;
use crate::core::naming::namespace::Namespace;
use crate::core::types::error::{LockError, LockErrorKind};
use crate::core::types::key::{Keys, LockKey, MAX_KEYS, counted};
use crate::core::types::options::{Options, Ttl};
use crate::core::types::permit::Permits;
use crate::core::types::ticket::Ticket;

pub(crate) mod blocking;
mod builder;
mod connect;
mod drain;
pub(crate) mod global;
pub(crate) mod lead;
mod redeem;
pub(crate) mod request;
pub(crate) mod request_all;
pub(crate) mod scope;

/// Locks keys on one backend.
///
/// Cheap to clone. It works on any number of tokio runtimes, at the same time or one after the other: it opens one
/// connection for each runtime, at its first use there, and a new one if that breaks.
///
/// # Guarantees
/// Of all holders that use the same backend, prefix and key, at most one has the lock at any time.
///
/// # What this does not guarantee
/// A lease on Redis is no proof of exclusion over a network: a failover may lose the lock, and a paused process may act
/// late. Pass the [fencing token](crate::Lease::fencing_token) to the resource that you protect, and let it reject
/// smaller ones.
///
/// # After a fork
/// A locker serves the process that made it. In a child process made by `fork` without `exec`, every call fails at
/// once, with [`NotConfigured`](crate::LockErrorKind::NotConfigured): the child has none of the threads that release
/// and renew, and shares the connections. Nothing is sent, and the parent's locks stay as they are.
///
/// - Make another locker in the child, use it on a runtime that the child made, and [`install`](crate::install) it
///   there. The child makes a default locker from the environment by itself.
/// - An inherited guard does not hold its lock, and its drop does nothing.
/// - It is best to fork, or to become a daemon, before you make the first locker.
///
/// # Examples
/// ```
/// # async fn example() -> Result<(), lockable_runtime::LockError> {
/// use lockable_runtime::Locker;
///
/// let locker = Locker::connect("memory://").await?;
/// let stock = locker.lock("stock:7").run(async { 41 + 1 }).await?;
/// assert_eq!(stock, 42);
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone)]
pub struct Locker(Arc<Shared>);

struct Shared {
    acquirer: Arc<Acquirer>,
    prefix: String,
    namespace: Namespace,
    ttl: Ttl,
    /// Settings in the URL for other programs.
    ignored: Vec<String>,
}

impl Locker {
    fn new(acquirer: Arc<Acquirer>, prefix: String, namespace: Namespace, ttl: Ttl) -> Self {
        Self(Arc::new(Shared { acquirer, prefix, namespace, ttl, ignored: Vec::new() }))
    }

    /// Makes a request for the lock of this key; nothing happens until it is acquired.
    ///
    /// The locker puts its prefix before the key. The text is not escaped: make a key with a value by
    /// [`lock_key!`](crate::lock_key), so that it is the same lock as under the attribute. The lock carries the
    /// [`RequestId`](crate::RequestId) that is current where it is acquired, or else the one that is current here.
    pub fn lock(&self, key: impl AsRef<str>) -> LockRequest {
        self.request(&self.0.prefix, key, Options::default())
    }

    /// Makes a request for the locks of all these keys, acquired all or none; nothing happens until then.
    ///
    /// Calls for several keys cannot deadlock, whatever the order of the keys. In a cluster they may be in any slots.
    /// Each lock has a lease and a fencing token of its own. Two equal keys are one lock. Without a key, and with more
    /// than 64, acquiring fails.
    ///
    /// # Examples
    /// ```
    /// # use lockable_runtime::lock_key;
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// # let (from, to) = (7, 3);
    /// let accounts = [lock_key!("account:{from}")?, lock_key!("account:{to}")?];
    /// let moved = locker.lock_all(accounts).run(async { 100 }).await?;
    /// # assert_eq!(moved, 100);
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub fn lock_all(
        &self,
        keys: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> LockRequest<Vec<LockKey>> {
        self.request_all(&self.0.prefix, keys, Options::default())
    }

    /// Makes a request for the lock that this ticket has; nothing happens until it is acquired.
    ///
    /// The locker must have the same store as the one that [made the ticket](crate::LockGuard::into_ticket), and a
    /// prefix with which the ticket's key begins; others refuse it before anything is sent. Each ticket is redeemed
    /// once; [`acquire`](LockRequest::<Ticket>::acquire) shows what a worker does with one that is not redeemed.
    pub fn redeem(&self, ticket: Ticket) -> LockRequest<Ticket> {
        let ticket = self.accepts(&ticket).map(|()| ticket);
        self.request_of(ticket, &self.0.prefix, Options::default())
    }

    fn accepts(&self, ticket: &Ticket) -> Result<(), LockError> {
        let Shared { prefix, namespace, .. } = &*self.0;
        let refused = |why| {
            let message = format!("the ticket is of {why}");
            LockError::of_flaw(LockErrorKind::InvalidOption, message)
                .with_key(ticket.key().as_str())
        };
        if !ticket.is_of(self.context().backend.store()) {
            let name = self.backend_name();
            return Err(refused(format!(
                "another store than {name}; write the same hosts and database in the URLs of both processes"
            )));
        }
        let Some(name) = ticket.key().as_str().strip_prefix(&**prefix) else {
            return Err(refused(format!(
                "a key outside of this locker's prefix `{prefix}`; redeem it with the prefix of the locker that made it"
            )));
        };
        namespace.held(prefix, name).map(drop)
    }

    pub(crate) fn request_all(
        &self,
        prefix: &str,
        keys: impl IntoIterator<Item = impl AsRef<str>>,
        options: Options,
    ) -> LockRequest<Vec<LockKey>> {
        // One more than there may be, and not an endless number.
        let keys = keys.into_iter().take(MAX_KEYS + 1);
        let keys = keys.map(|key| self.0.namespace.key(prefix, key.as_ref())).collect();
        self.request_of(Result::and_then(keys, counted), prefix, options)
    }

    /// A request with these options, but the lease of this locker.
    pub(crate) fn request(
        &self,
        prefix: &str,
        key: impl AsRef<str>,
        options: Options,
    ) -> LockRequest {
        let permits = options.permits;
        let request = self.request_of(self.0.namespace.key(prefix, key.as_ref()), prefix, options);
        if let Permits::OneOf(count) = permits { request.permits(count) } else { request }
    }

    fn request_of<K: Keys>(
        &self,
        key: Result<K, LockError>,
        prefix: &str,
        options: Options,
    ) -> LockRequest<K> {
        let Shared { acquirer, ttl, .. } = &*self.0;
        LockRequest::new(Arc::clone(acquirer), key, prefix.len(), Options { ttl: *ttl, ..options })
    }

    /// Returns who has the lock of this key, and for how long; `None` when it has no holder.
    ///
    /// # What this does not guarantee
    /// The result is a snapshot from when the server sent it. To acquire only a free lock, use
    /// [`try_acquire`](LockRequest::try_acquire), which is one step.
    ///
    /// # Errors
    /// - [`is_unavailable`](LockError::is_unavailable) when the backend does not reply within its deadline, or refuses.
    /// - [`WrongType`](crate::LockErrorKind::WrongType) when the key holds data that is no lock.
    /// - [`InvalidKey`](crate::LockErrorKind::InvalidKey), before anything is sent.
    /// - [`NotConfigured`](crate::LockErrorKind::NotConfigured) [after a fork](Locker#after-a-fork).
    ///
    /// # Cancel safety
    /// The call only reads, so dropping the future changes nothing.
    pub async fn inspect(&self, key: impl AsRef<str>) -> Result<Option<Holder>, LockError> {
        let context = self.context();
        context.usable_here()?;
        let key = self.0.namespace.held(&self.0.prefix, key.as_ref());
        inspect(context, key.map_err(|error| context.reporting.redact(error))?).await
    }

    pub(crate) fn with_prefix(&self, prefix: String) -> Self {
        let Shared { acquirer, namespace, ttl, ignored, .. } = &*self.0;
        Self::new(Arc::clone(acquirer), prefix, namespace.clone(), *ttl).ignoring(ignored.clone())
    }

    fn ignoring(mut self, ignored: Vec<String>) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.0) {
            shared.ignored = ignored;
        }
        self
    }

    pub(crate) fn context(&self) -> &Arc<BackendContext> {
        &self.0.acquirer.context
    }

    pub(crate) fn acquirer(&self) -> &Acquirer {
        &self.0.acquirer
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        &self.0.namespace
    }

    pub(crate) fn ignored(&self) -> &[String] {
        &self.0.ignored
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.0.prefix
    }

    /// Where the locks are, without credentials.
    pub(crate) fn backend_name(&self) -> &str {
        self.context().backend.name()
    }
}

impl fmt::Debug for Locker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locker")
            .field("backend", &self.backend_name())
            .field("prefix", &self.0.prefix)
            .field("namespace", &self.0.namespace.as_str())
            .field("expire", &self.0.ttl.duration())
            .finish()
    }
}
