#![deny(warnings, dead_code)]

use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", guard = lock)]
async fn unused(mut counted: u8, never: u8) -> Option<u8> {
    use std::fmt::Debug;
    let local = 3;
    return Some(counted);
    drop(1);
}

#[distributed_lock(key = "k", guard = lock)]
fn unused_sync(mut counted: u8, never: u8) -> Option<u8> {
    let local = 3;
    return Some(counted);
    drop(1);
}

#[distributed_lock(key = "k", guard = lock)]
fn unused_boxed(mut counted: u8, never: u8) -> BoxFuture<'static, Option<u8>> {
    let local = 3;
    return Box::pin(async { None });
    drop(1);
}

type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + 'a>>;

fn main() {}
