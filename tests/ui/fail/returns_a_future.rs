use std::future::Future;

use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k")]
fn hidden() -> impl Future<Output = u8> {
    async { 1 }
}

#[distributed_lock(key = "k")]
fn boxed_but_not_pinned() -> Box<dyn Future<Output = Option<u8>> + Unpin> {
    Box::new(std::future::ready(None))
}

fn main() {
    drop((hidden(), boxed_but_not_pinned()));
}
