use std::pin::Pin;

use futures_core::Stream;
use lockable_runtime::{LockError, distributed_lock};

type BoxStream<'a, T> = Pin<Box<dyn Stream<Item = T> + Send + 'a>>;

fn rows() -> BoxStream<'static, u8> {
    unimplemented!()
}

#[distributed_lock(key = "k")]
async fn hidden() -> Result<impl Stream<Item = u8>, LockError> {
    Ok(rows())
}

#[distributed_lock(key = "k")]
async fn boxed() -> Option<Box<dyn Stream<Item = u8> + Send + Unpin>> {
    Some(Box::new(rows()))
}

#[distributed_lock(key = "k")]
async fn by_alias() -> Result<BoxStream<'static, u8>, LockError> {
    Ok(rows())
}

#[distributed_lock(key = "k", on_busy = rows(), on_error = |_| rows())]
fn of_sync() -> Pin<Box<dyn Stream<Item = u8> + Send>> {
    rows()
}

fn main() {
    drop((hidden(), boxed(), by_alias(), of_sync()));
}
