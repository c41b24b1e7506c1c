use lockable_runtime::distributed_lock;

struct ShopError;

#[distributed_lock(key = "k")]
async fn settle() -> Result<u8, ShopError> {
    Err(ShopError)
}

fn main() {}
