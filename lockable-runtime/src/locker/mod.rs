//! The public entry points: a locker, its builder, and the request for one lock.

use std::fmt;
use std::sync::Arc;

pub use self::builder::LockerBuilder;
#[cfg(lockable_internals)]
pub use self::builder::rechecks_later;
#[cfg(feature = "admin")]
use crate::admin::Admin;
use crate::backend::BackendContext;
use crate::check::{Code, Finding, Report, Role, Severity};
use crate::holder::Holder;
use crate::locker::acquire::Acquirer;
use crate::locker::inspect::inspect;
use crate::locker::request::LockRequest;
use crate::types::error::{LockError, LockErrorKind};
use crate::types::key::{Keys, LockKey, MAX_KEYS, counted};
use crate::types::namespace::Namespace;
use crate::types::options::{Options, Ttl};
use crate::types::permit::Permits;
use crate::types::ticket::Ticket;

pub(crate) mod acquire;
pub(crate) mod blocking;
mod builder;
mod connect;
mod drain;
mod environment;
pub(crate) mod global;
pub(crate) mod inspect;
pub(crate) mod lead;
mod redeem;
pub(crate) mod request;
pub(crate) mod request_all;
pub(crate) mod scope;
mod url;
mod url_settings;

/// Locks keys on one backend.
///
/// Cheap to clone. It works on any number of tokio runtimes, at the same time or one after the other: the locker
/// opens one connection for each runtime, at its first use there, and a new one if that breaks.
///
/// # Guarantees
/// Of all holders that use the same backend, prefix and key, at most one has the lock at any time.
///
/// # What this does not guarantee
/// A lease on Redis is no proof of exclusion over a network: a failover may lose the lock, and a paused process may
/// act late. Pass the [fencing token](crate::Lease::fencing_token) to the resource that you protect, and let it
/// reject smaller ones.
///
/// # After a fork
/// A locker serves the process that made it. In a child process made by `fork` without `exec`, every call fails at
/// once, with [`NotConfigured`](crate::LockErrorKind::NotConfigured): the child has none of the threads that
/// release and renew, and shares the connections. Nothing is sent, and the parent's locks stay as they are.
///
/// - Make another locker in the child, use it on a runtime that the child made, and [`install`](crate::install) it
///   there. The child makes a default locker from the environment by itself.
/// - An inherited guard does not hold its lock, and its drop does nothing.
/// - It is best to fork, or to become a daemon, before you make the first locker.
///
/// # Examples
/// Lock, work, release:
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
    /// The settings in the URL that are other programs'.
    ignored: Vec<String>,
}

impl Locker {
    fn new(acquirer: Arc<Acquirer>, prefix: String, namespace: Namespace, ttl: Ttl) -> Self {
        Self(Arc::new(Shared { acquirer, prefix, namespace, ttl, ignored: Vec::new() }))
    }

    /// Makes a request for the lock of this key; nothing happens until it is acquired.
    ///
    /// The locker puts its prefix before the key. The text is not escaped: make a key that has a value by
    /// [`lock_key!`](crate::lock_key), and it is the same lock as under the attribute. The lock carries the [`RequestId`](crate::RequestId) that is current where it
    /// is acquired, or else the one that is current here.
    pub fn lock(&self, key: impl AsRef<str>) -> LockRequest {
        self.request(&self.0.prefix, key, Options::default())
    }

    /// Makes a request for the locks of all these keys; nothing happens until they are acquired.
    ///
    /// All of them, or none, in any order: calls for several keys cannot deadlock. In a cluster the keys may be in any
    /// slots. Each key is as for [`lock`](Locker::lock), and each lock has a lease and a fencing token of its own. Two
    /// equal keys are one lock. Without a key, and with more than 64, acquiring fails.
    ///
    /// # Examples
    /// A transfer, which needs both accounts:
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
    /// [`LockGuard::into_ticket`](crate::LockGuard::into_ticket) has made the ticket, in this process or in another one.
    /// The locker has to have the same store and a prefix with which the ticket's key begins; others refuse it before
    /// anything is sent. Each ticket is redeemed once. What a worker does with one that is not redeemed is shown at
    /// [`acquire`](LockRequest::<Ticket>::acquire).
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// # let guard = locker.lock("order:7").acquire().await?;
    /// # let message = guard.into_ticket(Duration::from_secs(60)).await?.expose_secret();
    /// let ticket = message.parse()?;
    /// let stock = locker.redeem(ticket).renew().run(async { 41 + 1 }).await?;
    /// # assert_eq!(stock, 42);
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub fn redeem(&self, ticket: Ticket) -> LockRequest<Ticket> {
        let ticket = self.accepts(&ticket).map(|()| ticket);
        self.request_of(ticket, &self.0.prefix, Options::default())
    }

    /// # Errors
    /// When no lock of this locker can be the ticket's.
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

    /// A request for several locks, as [`request`](Self::request) makes one for one.
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

    /// A request on these options, but for the lease, whose length is this locker's.
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
    /// The result is a snapshot from when the server sent it. Do not decide by it whether to acquire, because that
    /// is a race; [`try_acquire`](LockRequest::try_acquire) is one step.
    ///
    /// # Errors
    /// - [`is_unavailable`](LockError::is_unavailable) when the backend does not reply within its deadline, or
    ///   refuses.
    /// - [`WrongType`](crate::LockErrorKind::WrongType) when the key holds data that is no lock.
    /// - [`InvalidKey`](crate::LockErrorKind::InvalidKey), before anything is sent.
    /// - [`NotConfigured`](crate::LockErrorKind::NotConfigured) [after a fork](Locker#after-a-fork).
    ///
    /// # Cancel safety
    /// The call only reads, so dropping the future changes nothing.
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// assert!(locker.inspect("order:7").await?.is_none());
    /// let guard = locker.lock("order:7").acquire().await?;
    /// match locker.inspect("order:7").await?.map(|holder| holder.remaining()) {
    ///     None => println!("free"),
    ///     Some(None) => println!("taken, without an end"),
    ///     Some(Some(rest)) => println!("taken, for {rest:?} more"),
    /// }
    /// # guard.release().await?;
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn inspect(&self, key: impl AsRef<str>) -> Result<Option<Holder>, LockError> {
        let context = self.context();
        context.usable_here()?;
        let key = self.0.namespace.held(&self.0.prefix, key.as_ref());
        inspect(context, key.map_err(|error| context.reporting.redact(error))?).await
    }

    /// Returns an [`Admin`], which lists the locks of this locker's prefix and can stop their holders.
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// let _guard = locker.lock("order:7").acquire().await?;
    /// let first = locker.admin().locks().next().await.transpose()?;
    /// assert_eq!(first.unwrap().name(), "order:7");
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    #[cfg(feature = "admin")]
    #[must_use]
    pub fn admin(&self) -> Admin {
        let Shared { acquirer, prefix, namespace, .. } = &*self.0;
        Admin::new(Arc::clone(&acquirer.context), prefix.clone(), namespace.clone())
    }

    /// Checks whether locks can work, and what endangers them.
    ///
    /// Run it at start-up, to log the report, and in a pipeline, to stop before a deployment. It takes about ten
    /// round trips.
    ///
    /// On Redis the check performs every operation of a lock once, on connections of its own, with a lock of its
    /// own whose key begins with the locker's prefix. The report names:
    ///
    /// - each right that the user lacks, as the ACL rule that grants it;
    /// - a version, a role or a setting of the server that is unsuitable for locks;
    /// - a proxy that seems to be between;
    /// - a subscription that slows waiting down;
    /// - a server that does not reply.
    ///
    /// A part that the user may not read, because locks do not need that right, is an info finding; the search for
    /// a proxy is skipped without one. On `memory://` the report states the limits of such locks.
    ///
    /// With Sentinels the check does all of this on the primary that they name. It also checks of each Sentinel
    /// whether it replies, which rights it refuses, and which primary it names. The report says where Sentinels
    /// disagree, where there are too few Sentinels or replicas for a failover, and where this machine cannot reach
    /// the address that they name. [`Finding::address`](crate::check::Finding::address) is the server that a
    /// finding is about. If some Sentinels do not reply, the primary is still checked completely.
    ///
    /// In a cluster the check does all of this on every primary, with a lock in one of its slots, and connects to
    /// every replica. The report names slots without a primary, primaries without a replica or with clocks that
    /// differ, nodes that are unreachable from here or refuse this user, and nodes of the URL that do not reply.
    ///
    /// # Guarantees
    /// The check touches no other lock, and leaves nothing behind.
    ///
    /// # What this does not guarantee
    /// - A proxy is found by the address at which the server accepted the connection (`CLIENT INFO`), or because
    ///   two connections are one connection at the server, or reach two servers (`INFO`). A proxy that is
    ///   transparent to both is not found.
    /// - The report is a snapshot.
    /// - If the user may use only some keys of the prefix, the report says that the right to all of them is
    ///   missing.
    /// - The check's refused commands appear in the server's `ACL LOG`.
    ///
    /// # The least rights
    /// These lines allow everything that a locker ever does. Replace the names and passwords by yours, `disLock:`
    /// by your prefix, and `lockable` by your [`namespace`](LockerBuilder::namespace).
    ///
    #[doc = include_str!("../../acl.md")]
    ///
    /// Some of these rights are optional:
    ///
    /// - `+select` is for a URL that names another database than 0, and `+asking` for slots that are moved to
    ///   another node.
    /// - If no call waits for a lock, a server does not need `+publish`, `+subscribe`, `+pubsub|numsub`, `+ping`
    ///   and `&lockable:*`. The report then says that they are missing.
    /// - In a cluster, calls can wait without `+spublish`, `+ssubscribe`, `+sunsubscribe`, `+pubsub|shardnumsub`
    ///   and `&lockable:*`, but poll about once a second.
    /// - `+client|setname` lets listings show which process has a lock.
    /// - `+client|tracking` and `+client|caching`, in a cluster also `+exists`, let a deleted lock stop its body at
    ///   once.
    /// - In a cluster, `+publish` and `+subscribe` let operators ask holders to stop.
    /// - `+copy` lets the first locks of a connection cost a server less.
    /// - `+evalsha` lets a call send the name of a script in place of its text, and `+script|exists` a new connection too.
    ///
    /// With `+config|get` and `+info`, which no lock needs, the first connection of a process to a server logs what the
    /// check warns of in its settings. Without them its `ACL LOG` has both refusals.
    ///
    /// # Cancel safety
    /// When the future is dropped, the check continues in the background, and cleans up.
    ///
    /// # Examples
    /// A service that does not start if its locks cannot work:
    /// ```
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lockable_runtime::Locker;
    ///
    /// let locker = Locker::builder().url("memory://").connect_lazy()?;
    /// let report = locker.check().await;
    /// println!("{report}");
    /// if !report.is_ok() {
    ///     return Err("locks cannot work".into());
    /// }
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    ///
    /// A finding in a test or in a pipeline:
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// use lockable_runtime::check::Severity;
    ///
    /// for finding in locker.check().await.findings() {
    ///     if finding.severity() >= Severity::Warning {
    ///         eprintln!("{}: {}", finding.code(), finding.advice());
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn check(&self) -> Report {
        self.check_as(Role::App).await
    }

    /// Checks as [`check`](Locker::check) does, with the rights that another role needs.
    ///
    /// As [`Role::Reader`](Role) it checks rights only, and does nothing with a lock. The least rights of operators
    /// and readers are those of [`admin`](crate::admin#rights).
    ///
    /// # Guarantees
    /// As [`check`](Locker::check).
    ///
    /// # Cancel safety
    /// As [`check`](Locker::check).
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// use lockable_runtime::Locker;
    /// use lockable_runtime::check::Role;
    ///
    /// let locker = Locker::builder().url("memory://").connect_lazy()?;
    /// println!("{}", locker.check_as(Role::Reader).await);
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn check_as(&self, role: Role) -> Report {
        if let Err(error) = self.context().usable_here() {
            return unchecked(self.backend_name(), &error)
                .of(self.prefix(), self.0.namespace.as_str());
        }
        let report = self.context().backend.check(&self.0.prefix, role).await;
        let mut report = report.of(self.prefix(), self.0.namespace.as_str());
        report.add(self.0.ignored.iter().map(|name| ignored(name)));
        if let Err(error) = LockKey::prefixed(&self.0.prefix, "key") {
            let severity = Severity::Error;
            let code = Code::InvalidPrefix;
            report.add([Finding::new(severity, code, error.to_string())]);
        }
        report
    }

    /// Returns this locker with another prefix.
    pub(crate) fn with_prefix(&self, prefix: String) -> Self {
        let Shared { acquirer, namespace, ttl, ignored, .. } = &*self.0;
        Self::new(Arc::clone(acquirer), prefix, namespace.clone(), *ttl).ignoring(ignored.clone())
    }

    /// Notes that the URL of this locker had these settings for other programs.
    fn ignoring(mut self, ignored: Vec<String>) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.0) {
            shared.ignored = ignored;
        }
        self
    }

    pub(crate) fn context(&self) -> &BackendContext {
        &self.0.acquirer.context
    }

    pub(crate) fn acquirer(&self) -> &Acquirer {
        &self.0.acquirer
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.0.prefix
    }

    /// Where this locker's locks live, without credentials.
    pub(crate) fn backend_name(&self) -> &str {
        self.context().backend.name()
    }
}

/// The report of a check that cannot be done.
fn unchecked(backend: &str, error: &LockError) -> Report {
    let mut report = Report::new(backend);
    let advice = "make another locker in this process";
    let severity = Severity::Error;
    let code = Code::Unreachable;
    report.add([Finding::new(severity, code, error.to_string()).advise(advice)]);
    report
}

fn ignored(name: &str) -> Finding {
    let message = format!("the setting `{name}` of the URL is not lockable's, and is ignored");
    let finding = Finding::new(Severity::Info, Code::SettingIgnored, message);
    finding.about(name.to_owned()).advise(url_settings::advice_on_ignored())
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
