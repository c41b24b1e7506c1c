use lockable_runtime::distributed_lock;

struct Order;

#[distributed_lock(key = "order:{order}")]
async fn hole(order: Order) {}

#[distributed_lock(key("order:{}", pair.0))]
async fn argument(pair: (Order, u8)) {}

#[distributed_lock(key = "order:{id}")]
async fn generic<T>(id: T) {}

#[distributed_lock(key = "order:{id}:{lines}")]
fn option_and_list(id: Option<u64>, lines: Vec<u8>) {}

fn main() {}
