#![deny(warnings)]

use lockable_runtime::distributed_lock;

#[distributed_lock(key = "order:${id}")]
async fn as_in_javascript(id: u64) -> Option<u64> {
    Some(id)
}

#[distributed_lock(key = "order:#{id}")]
fn as_in_ruby(id: u64) -> Option<u64> {
    Some(id)
}

#[distributed_lock(key("ticket #{id}"))]
async fn is_meant(id: u64) -> Option<u64> {
    Some(id)
}

fn main() {
    drop((as_in_javascript(1), as_in_ruby(1), is_meant(1)));
}
