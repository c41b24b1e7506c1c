use std::future::Future;
use std::pin::Pin;

use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", blocking)]
fn tries_once() {}

#[distributed_lock(key = "k", wait, blocking)]
async fn asynchronous() {}

#[distributed_lock(key = "k", blocking)]
fn boxed() -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async {})
}

#[distributed_lock(key = "k", wait, blocking = true)]
fn switch() {}

fn main() {}
