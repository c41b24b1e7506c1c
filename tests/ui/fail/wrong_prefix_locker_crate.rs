use lockable_runtime::distributed_lock;

const PREFIX: &str = "shop:";

#[distributed_lock(key = "k", prefix = PREFIX)]
async fn prefix() {}

#[distributed_lock(key = "k", crate = "::elsewhere")]
async fn runtime() {}

#[distributed_lock(key = "k", locker = "redis://127.0.0.1")]
async fn locker() {}

fn main() {}
