use lockable_runtime::distributed_lock;

#[distributed_lock(key("order:{}", id, line))]
async fn positional(id: u64, line: u8) {}

#[distributed_lock(key("order:{id}", line = line))]
async fn named(id: u64, line: u8) {}

fn main() {}
