use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", expires = 10)]
async fn misspelt() {}

#[distributed_lock(key = "k", leaseTime = 10, lockAtMostFor = "10s")]
async fn from_elsewhere() {}

#[distributed_lock(key = "k", nothing_like_it)]
async fn unknown() {}

fn main() {}
