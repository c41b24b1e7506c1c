use lockable_runtime::distributed_lock;

#[distributed_lock(key = "order:{}")]
async fn no_arguments() {}

#[distributed_lock(key("order:{}:{}", id))]
async fn one_argument(id: u64) {}

#[distributed_lock(key = "order:{0}")]
async fn by_place() {}

fn main() {}
