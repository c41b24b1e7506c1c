use std::future::{Future, ready};
use std::pin::Pin;

use lockable_runtime::{LockError, distributed_lock};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

#[distributed_lock(key = "k")]
fn hidden() -> impl Future<Output = u8> {
    async { 1 }
}

#[distributed_lock(key = "k")]
fn boxed_but_not_pinned() -> Box<dyn Future<Output = Option<u8>> + Unpin> {
    Box::new(ready(None))
}

#[distributed_lock(key = "k")]
fn in_an_option() -> Option<impl Future<Output = u8>> {
    Some(ready(1))
}

#[distributed_lock(key = "k", on_busy = ready(1), on_error = |_| ready(1))]
async fn of_async() -> impl Future<Output = u8> {
    ready(1)
}

#[distributed_lock(key = "k")]
async fn in_a_result() -> Result<BoxFuture<'static, u8>, LockError> {
    Ok(Box::pin(ready(1)))
}

#[distributed_lock(key = "k")]
async fn spelled_out() -> Option<Pin<Box<dyn Future<Output = u8> + Send>>> {
    Some(Box::pin(ready(1)))
}

#[distributed_lock(key = "k")]
fn of_boxed() -> BoxFuture<'static, Option<Box<dyn Future<Output = u8> + Send>>> {
    Box::pin(ready(None))
}

#[distributed_lock(key = "k")]
fn of_an_attribute() -> impl ::core::future::Future<Output = u8> + Send {
    ready(1)
}

fn main() {
    drop((hidden(), boxed_but_not_pinned(), in_an_option()));
    drop((of_async(), in_a_result(), spelled_out(), of_boxed(), of_an_attribute()));
}
