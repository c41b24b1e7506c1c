use lockable_runtime::distributed_lock;

#[distributed_lock(key = "first")]
#[distributed_lock(key = "second")]
async fn settle() {}

fn main() {}
