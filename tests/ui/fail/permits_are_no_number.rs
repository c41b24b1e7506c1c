use lockable_runtime::distributed_lock;

#[distributed_lock(key = "a", permits = limit)]
async fn export(limit: &str) {}

fn main() {}
