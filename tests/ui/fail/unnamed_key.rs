use lockable_runtime::distributed_lock;

#[distributed_lock("order:{id}", expire = 10)]
async fn settle(id: u64) {}

fn main() {}
