use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", expire = 10, expire = 20)]
async fn settle() {}

fn main() {}
