//! Refuses futures and streams as a body's value, because their work would run after the release.
//!
//! See "Why may a decorated function not return a future?" in DESIGN.md.

use std::future::Future;
use std::marker::PhantomData;

use futures_core::Stream;

/// States that a decorated function returns this value on purpose for use after the release of its lock.
///
/// A future, a stream or a lazy iterator does its work when the caller uses it. So
/// [`#[distributed_lock]`](macro@crate::distributed_lock#what-must-not-leave-the-body) refuses futures and streams, and
/// warns of iterators, except in this wrapper. Use it for:
///
/// - a handle of work that already runs and does not need the lock, such as tokio's `JoinHandle` or
///   `oneshot::Receiver`;
/// - a value whose remaining work does not need the lock, such as an iterator over a collection that the body has made.
///
/// # What this does not guarantee
/// The value is not under the lock, and does not notice the end of the lease.
///
/// # Examples
/// ```
/// use lockable_runtime::{AfterRelease, LockError, Locker, distributed_lock};
/// use tokio::task::JoinHandle;
///
/// /// Charges an order under its lock. The letter about it needs no lock.
/// #[distributed_lock(key = "order:{id}", locker = locks)]
/// async fn charge(locks: &Locker, id: u64) -> Result<AfterRelease<JoinHandle<u64>>, LockError> {
///     // … charge it …
///     let letter = async move { id };
///     Ok(AfterRelease(tokio::spawn(letter)))
/// }
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let AfterRelease(letter) = charge(&Locker::in_memory(), 7).await?;
/// assert_eq!(letter.await?, 7);
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AfterRelease<T>(pub T);

/// The type of a body's value.
#[derive(Debug)]
pub struct Returned<T>(PhantomData<fn() -> T>);

impl<T> Returned<T> {
    /// Takes the type of a value.
    #[must_use]
    pub fn new(_: &T) -> Self {
        Self(PhantomData)
    }

    /// Compiles for every type.
    ///
    /// Where [`Late::check`] applies, method resolution prefers that, because it takes no reference.
    pub fn check(&self) {}
}

/// What a body may not return.
///
/// `Found` says where the future or the stream is; without it the implementations would overlap.
pub trait Late<Found> {
    /// The late work.
    type Work: ?Sized;

    /// Never compiles.
    fn check(self)
    where
        Self: Sized,
        Self::Work: RunsUnderTheLock,
    {
    }
}

impl<T: Works<F>, F> Late<F> for Returned<T> {
    type Work = T::Work;
}

/// A future, a stream, or a value around one.
pub trait Works<Found> {
    /// The late work.
    type Work: ?Sized;
}

/// The value is a future.
#[derive(Debug)]
pub struct Awaited;

impl<T: Future + ?Sized> Works<Awaited> for T {
    type Work = T;
}

/// The value is a stream.
#[derive(Debug)]
pub struct Consumed;

impl<T: Stream + ?Sized> Works<Consumed> for T {
    type Work = T;
}

/// The value is around one.
#[derive(Debug)]
pub struct Inside<F>(F);

impl<T: Works<F>, E, F> Works<Inside<F>> for Result<T, E> {
    type Work = T::Work;
}

impl<T: Works<F>, F> Works<Inside<F>> for Option<T> {
    type Work = T::Work;
}

impl<T: Works<F> + ?Sized, F> Works<Inside<F>> for Box<T> {
    type Work = T::Work;
}

/// Implemented by nothing.
#[diagnostic::on_unimplemented(
    message = "the work of `{Self}` would run after the lock is released",
    label = "a future or a stream",
    note = "finish it inside of the body: await the future, consume the stream",
    note = "a sync function that returns a future is written as `async fn`, or spells its type out as `Pin<Box<dyn Future<Output = ..>>>` or `BoxFuture<'_, ..>`",
    note = "for work that ends elsewhere, acquire a guard in place of the attribute, and pass the lock on by `LockGuard::into_ticket`",
    note = "if the work does not need the lock, return it as `AfterRelease<..>`"
)]
pub trait RunsUnderTheLock {}
