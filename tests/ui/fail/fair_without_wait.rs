use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", fair)]
async fn settle() {}

#[distributed_lock(key = "k", expire = 10, fair, renew)]
fn settle_sync() {}

fn main() {}
