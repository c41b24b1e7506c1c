use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k:{text}")]
async fn twice(text: String) {
    drop(text);
    drop(text);
}

#[distributed_lock(key = "k", on_error = |_| Some(text))]
async fn on_error(text: String) -> Option<String> {
    Some(text)
}

#[distributed_lock(key = "k")]
async fn not_mutable(text: String) {
    text.push('x');
}

fn main() {}
