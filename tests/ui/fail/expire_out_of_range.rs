use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", expire = 0)]
async fn zero() {}

#[distributed_lock(key = "k", expire = -1)]
async fn unlimited() {}

#[distributed_lock(key = "k", expire = "9ms")]
async fn short() {}

#[distributed_lock(key = "k", expire = 99999999999999999999)]
async fn long() {}

fn main() {}
