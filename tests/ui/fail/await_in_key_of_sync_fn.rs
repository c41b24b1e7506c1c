use lockable_runtime::distributed_lock;

async fn number_of(sku: &str) -> usize {
    sku.len()
}

#[distributed_lock(key("stock:{}", number_of(sku).await))]
fn sell(sku: &str) {}

fn main() {}
