use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k")]
pub fn settle() {}

#[distributed_lock(key = "k")]
const fn limit() {}

fn main() {}
