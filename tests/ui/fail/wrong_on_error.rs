use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", on_error = None)]
async fn no_closure() -> Option<u8> {
    None
}

#[distributed_lock(key = "k", on_error = || None)]
async fn no_argument() -> Option<u8> {
    None
}

fn main() {}
