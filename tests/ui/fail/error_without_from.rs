use lockable_runtime::distributed_lock;

struct ShopError;

#[distributed_lock(key = "k")]
async fn settle() -> Result<u8, ShopError> {
    Err(ShopError)
}

#[distributed_lock(key = "k")]
fn of_another_crate() -> Result<u8, String> {
    Ok(1)
}

fn main() {}
