use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", on_lost = cancel)]
fn settle() {}

fn main() {}
