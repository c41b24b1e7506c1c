use std::future::Future;
use std::pin::Pin;

use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k")]
fn hidden() -> impl Future<Output = u8> {
    async { 1 }
}

#[distributed_lock(key = "k")]
fn boxed() -> Pin<Box<dyn Future<Output = Option<u8>> + Send>> {
    Box::pin(async { None })
}

fn main() {}
