use lockable_runtime::distributed_lock;

#[distributed_lock(key = "order:{id:>5}")]
async fn padded(id: u64) {}

#[distributed_lock(key = "order:{id:?}")]
async fn debug(id: u64) {}

#[distributed_lock(key("order:{:#?}", id))]
async fn argument(id: u64) {}

fn main() {}
