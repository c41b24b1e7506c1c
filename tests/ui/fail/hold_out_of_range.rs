use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", renew, max_hold = 0)]
async fn no_time_at_all() {}

#[distributed_lock(key = "k", renew, max_hold = -1)]
async fn unlimited() {}

#[distributed_lock(key = "k", renew, max_hold = 99999999999999999999)]
async fn long() {}

#[distributed_lock(key = "k", min_hold = "0s")]
async fn no_least() {}

#[distributed_lock(key = "k", min_hold = -1)]
async fn negative() {}

fn main() {}
