use lockable_runtime::distributed_lock;

#[distributed_lock(key = "order:{id")]
async fn open(id: u64) {}

#[distributed_lock(key = "order:}")]
async fn close(id: u64) {}

#[distributed_lock(key = "order:{_}")]
async fn underscore(id: u64) {}

fn main() {}
