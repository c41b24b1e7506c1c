use lockable_runtime::distributed_lock;

struct Order {
    id: u64,
}

#[distributed_lock(key = "#id")]
async fn by_id(id: u64) {}

#[distributed_lock(key = "'order:' + #order.id")]
async fn by_field(order: &Order) {}

#[distributed_lock(keys = {"#id"})]
async fn as_in_an_annotation(id: u64) {}

#[distributed_lock(key("#id"))]
async fn is_meant(_id: u64) {}

#[distributed_lock(key = "order#7")]
async fn is_plain_text(_id: u64) {}

fn main() {}
