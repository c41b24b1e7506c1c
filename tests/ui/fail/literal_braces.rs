#![deny(warnings)]

use lockable_runtime::distributed_lock;

#[distributed_lock(key = "order:{{id}}")]
async fn settle(id: u64) -> Option<u64> {
    Some(id)
}

struct Till;

impl Till {
    #[distributed_lock(key = "till:{{id}}:{line}")]
    fn settle(&self, id: u64, line: u8) -> Option<u64> {
        Some(id + u64::from(line))
    }
}

#[distributed_lock(key("order:{{id}}"))]
async fn is_meant(id: u64) -> Option<u64> {
    Some(id)
}

#[distributed_lock(key = "{{id}}:{id}")]
async fn is_a_hash_tag(id: u64) -> Option<u64> {
    Some(id)
}

#[allow(deprecated)]
#[distributed_lock(key = "{{id}}")]
async fn is_allowed(id: u64) -> Option<u64> {
    Some(id)
}

fn main() {
    drop((settle(1), Till.settle(1, 2), is_meant(1), is_a_hash_tag(1), is_allowed(1)));
}
