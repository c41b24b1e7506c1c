use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", waitTime = 3)]
async fn redisson() {}

#[distributed_lock(key = "k", acquire_timeout = 3)]
async fn pool() {}

#[distributed_lock(key = "k", lockWaitTime = "3s", fair)]
async fn annotation() {}

#[distributed_lock(key = "k", blocking_timeout = 3)]
async fn redis_py() {}

#[distributed_lock(key = "k", tries = 32)]
async fn redsync() {}

fn main() {}
