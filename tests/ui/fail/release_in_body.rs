use lockable_runtime::{LockError, distributed_lock};

#[distributed_lock(key = "k", guard = lock)]
async fn settle() -> Result<(), LockError> {
    lock.release().await?;
    Ok(())
}

fn main() {}
