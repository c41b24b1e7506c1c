//! A locker for one test, which decides what becomes of its locks.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use super::staged::{Counts, Staged};
use crate::core::backend::{
    AcquireReply, Attempt, Backend as _, BackendContext, Environment as _, Fault, TestStage,
};
use crate::core::holder::Holder;
use crate::core::lease::Loss;
use crate::core::locker::Locker;
use crate::core::locker::blocking::wait_for;
use crate::core::locker::scope::{scope, sync_scope};
use crate::core::memory::Memory;
use crate::core::request_id::RequestId;
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;
use crate::core::types::options::{Deadlines, Ttl};
use crate::core::types::owner::OwnerToken;
use crate::core::types::permit::{Permits, PermitsKey};
use crate::core::types::reason::Reason;
use crate::core::types::reporting::Reporting;

/// A locker for one test, on an empty store in memory, with control over its locks.
///
/// [`scope`](TestLocks::scope) puts it in place of the process-wide locker, so that the decorated functions under test
/// use it unchanged. Every method works at once, on any thread, with or without a runtime.
///
/// A key is a rendered key template without the prefix: `"order:7"` is the lock of `#[distributed_lock(key =
/// "order:{id}")]`. For functions with the option `prefix` use [`with_prefix`](TestLocks::with_prefix).
///
/// Cheap to clone; clones share the same locks.
///
/// # Panics
/// Every method that takes a key panics if that cannot be a lock key.
///
/// # Examples
/// See [the module](crate::testing).
#[derive(Clone)]
pub struct TestLocks {
    memory: Arc<Memory>,
    staged: Arc<Staged>,
    locker: Locker,
}

impl TestLocks {
    /// Makes a locker on a store of its own, with the prefix `"disLock:"` and leases of 10 s.
    ///
    /// # Panics
    /// When the system gives no thread for the background, as [`std::thread::spawn`] does.
    #[must_use]
    #[track_caller]
    pub fn new() -> Self {
        sure(Self::try_new())
    }

    fn try_new() -> Result<Self, LockError> {
        let memory = Memory::open("").map_err(Fault::into_error)?;
        let staged = Arc::new(Staged::default());
        let backend = Arc::new(Arc::clone(&memory));
        let context =
            BackendContext::new(backend, Deadlines::default().command, Reporting::default());
        let context = context.staged(Arc::clone(&staged) as Arc<dyn TestStage>);
        let locker = Locker::builder().on(context, Ttl::DEFAULT)?;
        Ok(Self { memory, staged, locker })
    }

    /// Returns the same locks for keys with another prefix: for functions with the option `prefix`.
    ///
    /// # Examples
    /// ```
    /// # async fn example() {
    /// use lockable_runtime::distributed_lock;
    /// use lockable_runtime::testing::TestLocks;
    ///
    /// #[distributed_lock(key = "order:{id}", prefix = "shop:")]
    /// async fn ship(id: u32) -> Option<u32> {
    ///     Some(id)
    /// }
    ///
    /// let locks = TestLocks::new();
    /// let _other = locks.with_prefix("shop:").hold("order:7");
    /// assert_eq!(locks.scope(ship(7)).await, None);
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example());
    /// ```
    #[must_use]
    pub fn with_prefix(&self, prefix: impl Into<String>) -> Self {
        Self { locker: self.locker.with_prefix(prefix.into()), ..self.clone() }
    }

    /// Returns the locker: for functions with the option `locker`, and for code that holds one.
    #[must_use]
    pub fn locker(&self) -> &Locker {
        &self.locker
    }

    /// Runs a future with this locker in place of the process-wide one; for spawned tasks, see
    /// [`scope`](crate::testing::scope).
    ///
    /// # Cancel safety
    /// As that of the future.
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        scope(&self.locker, future)
    }

    /// Runs a closure with this locker in place of the process-wide one: for sync functions.
    pub fn sync_scope<T>(&self, work: impl FnOnce() -> T) -> T {
        sync_scope(&self.locker, work)
    }

    /// Lets another holder have the lock until the returned value is dropped, without a time limit.
    ///
    /// Meanwhile calls find the lock busy, or wait for it. The drop passes it to the first waiter.
    ///
    /// # Panics
    /// When the lock has a holder already.
    #[must_use = "the lock is free again when it is dropped"]
    #[track_caller]
    pub fn hold(&self, key: impl AsRef<str>) -> OtherHolder {
        self.hold_key(self.key(key.as_ref()))
    }

    /// Lets other holders have `count` permits of the key until the returned values are dropped.
    ///
    /// They have the first ones, `{key}#1` and so on, which the other methods take, too, as in
    /// `locks.lose("{export}#1")`. Calls are counted for `{key}`.
    ///
    /// # Panics
    /// When one of these permits has a holder already, or a key cannot have this number of permits.
    ///
    /// # Examples
    /// ```
    /// # async fn example() {
    /// use lockable_runtime::testing::TestLocks;
    ///
    /// let locks = TestLocks::new();
    /// let others = locks.hold_permits("export", 2);
    /// assert!(locks.locker().lock("export").permits(2).try_acquire().await.unwrap_err().is_busy());
    /// drop(others);
    /// assert!(locks.locker().lock("export").permits(2).try_acquire().await.is_ok());
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example());
    /// ```
    #[must_use = "the permits are free again when they are dropped"]
    #[track_caller]
    pub fn hold_permits(&self, key: impl AsRef<str>, count: u32) -> Vec<OtherHolder> {
        let key = self.key(key.as_ref());
        let permits_key = sure(PermitsKey::of(&key, self.locker.prefix().len()));
        let count = sure(Permits::OneOf(count).count());
        permits_key.members(count).map(|permit| self.hold_key(permit)).collect()
    }

    #[track_caller]
    fn hold_key(&self, key: LockKey) -> OtherHolder {
        let identity = RequestId::new("another holder");
        let owner = sure(OwnerToken::draw(Some(&identity)));
        self.take(&Arc::new(Attempt::owned(key, Ttl::MAX, owner)))
    }

    #[track_caller]
    fn take(&self, attempt: &Arc<Attempt>) -> OtherHolder {
        let memory = Arc::clone(&self.memory);
        let granted = wait_for(&memory, memory.try_acquire(Arc::clone(attempt)));
        let is_granted = matches!(granted, Some(Ok(AcquireReply::Granted(_))));
        assert!(is_granted, "the lock `{}` has a holder already", attempt.key);
        OtherHolder { memory, attempt: Arc::clone(attempt) }
    }

    /// Makes the run of this lock done, as a successful call with `once` does, without a time limit.
    ///
    /// Calls with `once` return [`is_done`](LockError::is_done), and others find the lock busy.
    /// [`lose`](TestLocks::lose) makes it free again.
    ///
    /// # Panics
    /// When the lock has a holder.
    #[track_caller]
    pub fn done(&self, key: impl AsRef<str>) {
        let key = self.key(key.as_ref());
        let owner = sure(OwnerToken::draw(None)).of_once();
        let attempt = Arc::new(Attempt::owned(key, Ttl::MAX, owner));
        let held = self.take(&attempt);
        attempt.min_hold.set_end(self.memory.now().after(Ttl::MAX.duration()));
        drop(held);
    }

    /// Makes the next acquisition of this lock return [`is_unavailable`](LockError::is_unavailable), without a request.
    ///
    /// Each further call before that makes one more acquisition fail.
    ///
    /// # What this does not guarantee
    /// A call with `wait` that finds other waiters joins the queue behind them, and acquires nothing itself.
    #[track_caller]
    pub fn fail_next(&self, key: impl AsRef<str>) {
        self.staged.fail_next(self.key(key.as_ref()));
    }

    /// Makes the next acquisition of any lock fail; see [`fail_next`](TestLocks::fail_next).
    pub fn fail_next_of_any(&self) {
        self.staged.fail_next_of_any();
    }

    /// Takes the lock away from its holder, as a server that loses its data.
    ///
    /// When this returns, the holder has noticed, and the first waiter has the lock. An async body is not polled again,
    /// and its call returns [`is_lost`](LockError::is_lost). In a sync body, or in code under a guard,
    /// [`is_held`](crate::Lease::is_held) is false.
    ///
    /// # Panics
    /// When the lock has no holder.
    #[track_caller]
    pub fn lose(&self, key: impl AsRef<str>) {
        let key = self.key(key.as_ref());
        for lease in self.locker.acquirer().leases(&key) {
            lease.refused(Loss::Absent);
        }
        let was_held = self.memory.evict(key.clone());
        assert!(was_held, "the lock `{key}` has no holder");
    }

    /// Asks the holder to stop, as an operator does.
    ///
    /// When this returns, the holder has noticed, and still has the lock; the first waiter gets it after the
    /// release. An async body is not polled again and is dropped under its lock, and its call returns
    /// [`is_revoked`](LockError::is_revoked). In a sync body, or in code under a guard,
    /// [`is_held`](crate::Lease::is_held) is false.
    ///
    /// # Panics
    /// When no call of this locker has the lock. An [`OtherHolder`] is no such call.
    ///
    /// # Examples
    /// ```
    /// # async fn example() {
    /// use lockable_runtime::testing::TestLocks;
    /// use lockable_runtime::{LockError, distributed_lock};
    ///
    /// #[distributed_lock(key = "import:{day}", renew)]
    /// async fn import(day: u32) -> Result<(), LockError> {
    ///     std::future::pending().await
    /// }
    ///
    /// let locks = TestLocks::new();
    /// let revoked = async {
    ///     tokio::task::yield_now().await;
    ///     locks.revoke("import:7", "maintenance");
    /// };
    /// let (outcome, ()) = tokio::join!(locks.scope(import(7)), revoked);
    /// assert!(outcome.unwrap_err().is_revoked());
    /// assert!(locks.holder("import:7").is_none());
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example());
    /// ```
    #[track_caller]
    pub fn revoke(&self, key: impl AsRef<str>, reason: impl AsRef<str>) {
        let key = self.key(key.as_ref());
        let reason = Reason::new(reason.as_ref());
        let leases = self.locker.acquirer().leases(&key);
        assert!(!leases.is_empty(), "no call of this locker has the lock `{key}`");
        for lease in leases {
            lease.revoke(&reason);
        }
    }

    /// Returns who has the lock now, and for how long; `None` when it has no holder.
    ///
    /// The [`request_id`](Holder::request_id) of an [`OtherHolder`] is `"another holder"`.
    #[must_use]
    #[track_caller]
    pub fn holder(&self, key: impl AsRef<str>) -> Option<Holder> {
        let found = self.memory.inspect(self.key(key.as_ref()));
        wait_for(&self.memory, found)?.ok()?.as_ref().map(Holder::of)
    }

    /// Returns how many calls wait for the lock now.
    #[must_use]
    #[track_caller]
    pub fn waiting(&self, key: impl AsRef<str>) -> usize {
        self.locker.acquirer().waiting(&self.key(key.as_ref()))
    }

    /// Returns the outcomes of the calls for this lock so far.
    #[must_use]
    #[track_caller]
    pub fn counts(&self, key: impl AsRef<str>) -> Counts {
        self.staged.counts(&self.key(key.as_ref()))
    }

    #[track_caller]
    fn key(&self, key: &str) -> LockKey {
        sure(LockKey::prefixed(self.locker.prefix(), key))
    }
}

#[track_caller]
#[expect(clippy::panic, reason = "a test that cannot mean what it says has to fail there")]
fn sure<T>(result: Result<T, LockError>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

impl Default for TestLocks {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TestLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestLocks").field("locker", &self.locker).finish_non_exhaustive()
    }
}

/// A lock that another holder has; made by [`TestLocks::hold`], and released when this is dropped.
#[must_use = "the lock is free again when it is dropped"]
pub struct OtherHolder {
    memory: Arc<Memory>,
    attempt: Arc<Attempt>,
}

impl Drop for OtherHolder {
    fn drop(&mut self) {
        // One that was taken away from it in the meantime is left as it is.
        drop(wait_for(&self.memory, self.memory.release(Arc::clone(&self.attempt))));
    }
}

impl fmt::Debug for OtherHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OtherHolder").field(&self.attempt.key).finish()
    }
}
