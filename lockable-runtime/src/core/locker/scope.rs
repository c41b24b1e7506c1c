//! A locker in place of the process-wide one, inside of a future or a closure.
//!
//! See "How does a scope replace the process-wide locker in tests?" in DESIGN.md.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::core::locker::Locker;

tokio::task_local! {
    static CURRENT: Locker;
}

/// Whether this process ever made a scope. If not, as in every program that is no test, a lookup of the process-wide
/// locker reads this and no thread-local.
///
/// Written before a scope exists: code inside of a scope comes there from the code that made it, and sees the value
/// whatever the ordering.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// Runs a future with this locker in place of the process-wide one.
///
/// Decorated functions without the option `locker` use it, at any depth: at every poll of the future, and when it is
/// dropped. So it works across `.await`, in `join!` and `select!`, and on any runtime, and no other test sees it. The
/// innermost of nested scopes applies.
///
/// [`TestLocks::scope`](crate::testing::TestLocks::scope) does this for its own locker. This function is for others,
/// such as one on a real server with a prefix for each test.
///
/// # What this does not guarantee
/// Tasks and threads that the future spawns are outside of the scope, unless they [inherit](inherit) the locker. The
/// process-wide locker applies to them. If none is installed, the call fails with
/// [`NotConfigured`](crate::LockErrorKind::NotConfigured), and does not run unlocked.
///
/// # Cancel safety
/// As that of the future.
///
/// # Examples
/// ```
/// # async fn example() {
/// use lockable_runtime::testing::scope;
/// use lockable_runtime::{Locker, distributed_lock};
///
/// #[distributed_lock(key = "order:{id}")]
/// async fn ship(id: u32) -> Option<u32> {
///     Some(id)
/// }
///
/// let locker = Locker::in_memory();
/// let guard = locker.lock("order:7").acquire().await.unwrap();
/// assert_eq!(scope(&locker, ship(7)).await, None);
/// assert_eq!(scope(&Locker::in_memory(), ship(7)).await, Some(7));
/// # drop(guard);
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example());
/// ```
pub fn scope<F: Future>(locker: &Locker, future: F) -> impl Future<Output = F::Output> + use<F> {
    IS_USED.store(true, Ordering::Relaxed);
    CURRENT.scope(locker.clone(), future)
}

/// Runs a closure with this locker in place of the process-wide one: for sync functions.
///
/// A future that the closure returns is outside of the scope; see [`scope`].
pub fn sync_scope<T>(locker: &Locker, work: impl FnOnce() -> T) -> T {
    IS_USED.store(true, Ordering::Relaxed);
    CURRENT.sync_scope(locker.clone(), work)
}

/// Carries the locker of the caller's [`scope`] over to a future that is to be spawned.
///
/// Outside of any scope it changes nothing and costs next to nothing, so code that spawns may use it for its tests.
///
/// # Cancel safety
/// As that of the future.
///
/// # Examples
/// ```
/// # async fn example() {
/// use lockable_runtime::distributed_lock;
/// use lockable_runtime::testing::{TestLocks, inherit};
///
/// #[distributed_lock(key = "order:{id}")]
/// async fn ship(id: u32) -> Option<u32> {
///     Some(id)
/// }
///
/// async fn ship_in_the_background(id: u32) -> Option<u32> {
///     tokio::spawn(inherit(ship(id))).await.unwrap()
/// }
///
/// let locks = TestLocks::new();
/// assert_eq!(locks.scope(ship_in_the_background(7)).await, Some(7));
/// assert_eq!(locks.counts("order:7").granted, 1);
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example());
/// ```
pub fn inherit<F: Future>(future: F) -> impl Future<Output = F::Output> + use<F> {
    let locker = scoped();
    async move {
        match locker {
            Some(locker) => scope(&locker, future).await,
            None => future.await,
        }
    }
}

/// Carries the locker of the caller's [`scope`] over to a closure on another thread.
///
/// Use it with `spawn_blocking` and [`std::thread::spawn`].
pub fn inherit_sync<T, W: FnOnce() -> T>(work: W) -> impl FnOnce() -> T + use<T, W> {
    let locker = scoped();
    move || match locker {
        Some(locker) => sync_scope(&locker, work),
        None => work(),
    }
}

pub(super) fn scoped() -> Option<Locker> {
    if !IS_USED.load(Ordering::Relaxed) {
        return None;
    }
    CURRENT.try_get().ok()
}
