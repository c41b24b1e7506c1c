#![deny(warnings)]

use lockable_runtime::distributed_lock;

#[distributed_lock(key = "order:id")]
async fn settle(id: u64) -> Option<u64> {
    Some(id)
}

#[distributed_lock(key = "job")]
fn run(job: &str) -> Option<usize> {
    Some(job.len())
}

#[distributed_lock(key("order:id"))]
async fn is_meant(id: u64) -> Option<u64> {
    Some(id)
}

fn main() {
    drop((settle(1), run("a"), is_meant(1)));
}
