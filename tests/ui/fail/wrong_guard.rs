use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", guard = "lock")]
async fn text() {}

#[distributed_lock(key = "k", guard = id)]
async fn hides(id: u64) {}

#[distributed_lock(key = "k", guard = _)]
async fn underscore() {}

fn main() {}
