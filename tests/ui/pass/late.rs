//! Values that may leave the body, because they do no work after it, or do it there on purpose.

use std::future::{Future, Ready, ready};

use lockable_runtime::{AfterRelease, LockError, distributed_lock};

use crate::boxed::BoxFuture;
use crate::pause;

#[distributed_lock(key = "k")]
pub async fn named() -> Result<AfterRelease<Ready<u8>>, LockError> {
    pause().await;
    Ok(AfterRelease(ready(7)))
}

#[distributed_lock(key = "k")]
pub async fn boxed() -> Option<AfterRelease<BoxFuture<'static, u8>>> {
    Some(AfterRelease(Box::pin(ready(7))))
}

#[distributed_lock(key = "k")]
pub async fn hidden() -> Option<AfterRelease<impl Future<Output = u8>>> {
    Some(AfterRelease(ready(7)))
}

#[distributed_lock(key = "k", on_busy = AfterRelease(ready(7)), on_error = |_| AfterRelease(ready(7)))]
pub async fn alone() -> AfterRelease<Ready<u8>> {
    AfterRelease(ready(7))
}

#[distributed_lock(key = "k")]
pub fn of_sync() -> Option<AfterRelease<Ready<u8>>> {
    Some(AfterRelease(ready(7)))
}

#[distributed_lock(key = "k")]
pub fn of_boxed() -> BoxFuture<'static, Option<AfterRelease<Ready<u8>>>> {
    Box::pin(async { Some(AfterRelease(ready(7))) })
}

#[distributed_lock(key = "k")]
pub fn iterator(limit: u8) -> Option<AfterRelease<impl Iterator<Item = u8>>> {
    Some(AfterRelease(0..limit))
}

#[distributed_lock(key = "k")]
pub async fn named_iterator() -> Option<std::vec::IntoIter<u8>> {
    Some(vec![7].into_iter())
}

#[distributed_lock(key = "k")]
pub async fn boxed_iterator() -> Result<Box<dyn Iterator<Item = u8> + Send>, LockError> {
    Ok(Box::new(0..7))
}

#[distributed_lock(key = "k")]
pub async fn generic<T>(value: T) -> Option<T> {
    pause().await;
    Some(value)
}

#[distributed_lock(key = "k")]
pub async fn generic_in_a_box<T>(value: T) -> Result<Box<T>, LockError> {
    Ok(Box::new(value))
}

#[distributed_lock(key = "k")]
pub fn generic_of_sync<T: Clone>(value: &T) -> Option<T> {
    Some(value.clone())
}

#[distributed_lock(key = "k")]
pub async fn list_of_futures() -> Option<Vec<Ready<u8>>> {
    Some(vec![ready(7)])
}

#[distributed_lock(key = "k")]
pub async fn closure() -> Option<impl Fn() -> Ready<u8>> {
    Some(|| ready(7))
}

pub trait Storage {
    type Row;

    fn row(&self) -> Self::Row;
}

#[distributed_lock(key = "k")]
pub async fn associated<S: Storage>(storage: &S) -> Option<S::Row> {
    Some(storage.row())
}
