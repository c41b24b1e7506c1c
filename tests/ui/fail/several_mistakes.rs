use lockable_runtime::distributed_lock;

#[distributed_lock(key = "{a}{b}", expires = 3, expire = 0, guard = lock)]
async fn settle(a: u8, b: u8) -> u64 {
    lock.fencing_token().into()
}

async fn caller() -> u64 {
    settle(1, 2).await
}

fn main() {}
