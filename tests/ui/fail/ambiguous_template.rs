use lockable_runtime::distributed_lock;

#[distributed_lock(key = "{id}{line}")]
async fn adjacent(id: u64, line: u8) {}

#[distributed_lock(key = "order:100%:{id}")]
async fn percent(id: u64) {}

fn main() {}
