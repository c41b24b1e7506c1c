use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", on_busy = 0, on_error = |_| String::new())]
async fn busy() -> String {
    String::new()
}

#[distributed_lock(key = "k", on_busy = String::new(), on_error = |_| 0)]
async fn error() -> String {
    String::new()
}

#[distributed_lock(key = "k", on_busy = skip, on_error = |_| 0)]
async fn skip() -> u32 {
    0
}

fn main() {}
