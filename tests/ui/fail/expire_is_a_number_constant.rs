use lockable_runtime::distributed_lock;

const SECONDS: u64 = 10;

#[distributed_lock(key = "k", expire = SECONDS)]
async fn settle() {}

fn main() {}
