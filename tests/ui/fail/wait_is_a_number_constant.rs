use lockable_runtime::distributed_lock;

const SECS: u64 = 3;

#[distributed_lock(key = "k", wait = SECS)]
async fn settle() {}

fn main() {}
