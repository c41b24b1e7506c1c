use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", on_busy = false)]
async fn settle() -> bool {
    true
}

#[distributed_lock(key = "k", on_error = |_| false)]
async fn the_other_way() -> bool {
    true
}

#[distributed_lock(key = "k", on_busy = Err(String::new()))]
async fn result() -> Result<u8, String> {
    Ok(1)
}

fn main() {}
