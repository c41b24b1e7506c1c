use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", once = "24h", on_busy = 0, on_error = |_| 0)]
async fn number() -> u32 {
    3
}

#[distributed_lock(key = "k", once = "24h", on_busy = 0, on_error = |_| 0)]
fn sync() -> u32 {
    3
}

fn main() {}
