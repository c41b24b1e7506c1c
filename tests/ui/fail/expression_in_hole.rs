use lockable_runtime::distributed_lock;

#[distributed_lock(key = "order:{order.id}:{line}")]
async fn field(order: &Order, line: u8) {}

#[distributed_lock(key = "order:{order.id()}:{}")]
async fn method(order: &Order) {}

pub struct Order {
    id: u64,
}

fn main() {}
