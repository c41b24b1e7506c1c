use lockable_runtime::distributed_lock;

#[distributed_lock(key = "order:{}:{}", order.id, line)]
async fn settle(order: &Order, line: u8) {}

pub struct Order {
    id: u64,
}

fn main() {}
