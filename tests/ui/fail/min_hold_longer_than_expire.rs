use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", expire = 10, min_hold = "11s")]
async fn settle() {}

#[distributed_lock(key = "k", min_hold = 3, expire = "2999ms")]
fn sync() {}

fn main() {}
