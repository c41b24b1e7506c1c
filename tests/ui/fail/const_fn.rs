use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k")]
const fn limit() -> Option<u8> {
    Some(3)
}

#[distributed_lock(key = "k")]
const async fn both() -> Option<u8> {
    Some(3)
}

fn main() {
    limit();
    drop(both());
}
