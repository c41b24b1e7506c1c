#![deny(warnings)]

use lockable_runtime::{LockError, Locker};

pub async fn settle(locks: &Locker) -> Result<(), LockError> {
    locks.lock("k").acquire().await?;
    let _guard = locks.lock("k").acquire().await?;
    Ok(())
}

fn main() {}
