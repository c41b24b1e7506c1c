use lockable_runtime::distributed_lock;

#[distributed_lock(key("order:{}", text.parse::<u8>()?))]
async fn settle(text: &str) {}

fn main() {}
