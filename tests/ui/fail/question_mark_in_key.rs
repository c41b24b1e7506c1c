use lockable_runtime::{LockError, distributed_lock};

#[distributed_lock(key("order:{}", text.parse::<u8>()?))]
async fn settle(text: &str) {}

#[distributed_lock(key("order:{}", text.parse::<u8>()?))]
async fn foreign_error(text: &str) -> Result<(), LockError> {
    Ok(())
}

fn main() {}
