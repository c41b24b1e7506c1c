use front::{LockError, distributed_lock};

#[distributed_lock(key = "order:{id}", on_busy = skip, guard = lock)]
async fn settle(id: u64) -> Result<(), LockError> {
    Ok(lock.extend(std::time::Duration::from_secs(id)).await?)
}

#[distributed_lock(key("order:{}", id + 1))]
fn settle_at_once(id: u64) -> Option<u64> {
    Some(id)
}

fn main() {}
