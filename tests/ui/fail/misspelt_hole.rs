use lockable_runtime::distributed_lock;

#[distributed_lock(key = "order:{oder_id}:{line}")]
async fn settle(order_id: u64, line: u8) {}

#[distributed_lock(key("order:{}", order.idd))]
async fn field(order: &Order) {}

pub struct Order {
    id: u64,
}

#[distributed_lock(key = "order:{colour}")]
async fn no_parameter(id: u64) {}

#[distributed_lock(key = "order:{self}:{id}")]
fn free() {}

#[distributed_lock(key = "order:{r#type}")]
async fn raw(r#type: u64) {}

fn main() {}
