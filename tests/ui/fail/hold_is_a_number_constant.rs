use lockable_runtime::distributed_lock;

const SECS: u64 = 3;

#[distributed_lock(key = "k", renew, max_hold = SECS)]
async fn at_most() {}

#[distributed_lock(key = "k", min_hold = SECS)]
async fn at_least() {}

fn main() {}
