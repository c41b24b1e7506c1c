use lockable_runtime::distributed_lock;

#[distributed_lock(keys = skus)]
async fn texts(skus: Vec<String>) {}

#[distributed_lock(keys = sku)]
async fn text(sku: String) {}

fn main() {}
