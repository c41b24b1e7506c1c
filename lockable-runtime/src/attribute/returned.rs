//! Finds the future that a sync function returns, and refuses it.

use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;

/// What a sync function returns: only its type is used.
///
/// A future is found by its type, whatever the type is called: where `T` is no future, the method of
/// [`Returned`] itself does not apply, and the one behind its `Deref` is called.
#[derive(Debug)]
pub struct Returned<T>(PhantomData<fn() -> T>);

impl<T> Returned<T> {
    /// Takes the type of a value.
    #[must_use]
    pub fn new(_: &T) -> Self {
        Self(PhantomData)
    }
}

impl<T: Future> Returned<T> {
    /// Never compiles.
    pub fn is_no_future(&self)
    where
        T: RunsUnderTheLock,
    {
    }
}

impl<T> Deref for Returned<T> {
    type Target = Value;

    fn deref(&self) -> &Value {
        &Value
    }
}

/// What a sync function may return.
#[derive(Debug)]
pub struct Value;

impl Value {
    /// Always compiles.
    pub fn is_no_future(&self) {}
}

/// Implemented by nothing.
#[diagnostic::on_unimplemented(
    message = "the future would run after the lock is released",
    label = "a future",
    note = "write the function as `async fn`, or spell the type out as `Pin<Box<dyn Future<Output = ..>>>` or `BoxFuture<'_, ..>`"
)]
pub trait RunsUnderTheLock {}
