use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", wait = 0)]
async fn no_time_at_all() {}

#[distributed_lock(key = "k", wait = "0s")]
async fn no_time_in_words() {}

#[distributed_lock(key = "k", wait = -1)]
async fn unlimited() {}

#[distributed_lock(key = "k", wait = 99999999999999999999)]
async fn long() {}

fn main() {}
