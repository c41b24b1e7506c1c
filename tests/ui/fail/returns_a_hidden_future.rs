use std::future::{Future, Ready, ready};
use std::pin::Pin;

use lockable_runtime::distributed_lock;

type Reply = Pin<Box<dyn Future<Output = u8> + Send>>;

#[distributed_lock(key = "k", on_busy = Box::pin(ready(1)), on_error = |_| Box::pin(ready(2)))]
fn alias() -> Reply {
    Box::pin(async { 1 })
}

#[distributed_lock(key = "k", on_busy = ready(1), on_error = |_| ready(2))]
fn named() -> Ready<u8> {
    ready(3)
}

#[distributed_lock(key = "k", on_busy = future, on_error = |_| unreachable!())]
fn generic<F: Future<Output = u8>>(future: F) -> F {
    future
}

trait Job {}

impl<F: Future> Job for F {}

#[distributed_lock(key = "k", on_busy = ready(1), on_error = |_| ready(2))]
fn other_trait() -> impl Job {
    ready(3)
}

trait Service {
    type Future;

    fn call(&self) -> Self::Future;
}

impl Service for u8 {
    type Future = Ready<u8>;

    #[distributed_lock(key = "k", on_busy = ready(1), on_error = |_| ready(2))]
    fn call(&self) -> Self::Future {
        ready(*self)
    }
}

fn main() {
    drop((alias(), named(), generic(ready(1)), other_trait(), 3.call()));
}
