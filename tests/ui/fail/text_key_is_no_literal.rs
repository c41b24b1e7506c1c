use lockable_runtime::distributed_lock;

const KEY: &str = "order";

#[distributed_lock(key = KEY)]
async fn constant() {}

#[distributed_lock(key = format!("order:{id}"))]
async fn computed(id: u64) {}

fn main() {}
