use lockable_runtime::distributed_lock;

#[distributed_lock(key = "")]
async fn empty() {}

#[distributed_lock(key())]
async fn no_template() {}

fn main() {}
