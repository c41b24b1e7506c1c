use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", expire = 10, max_hold = "5m")]
async fn settle() {}

fn main() {}
