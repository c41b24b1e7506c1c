use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k" expire = 10)]
async fn settle() {}

fn main() {}
