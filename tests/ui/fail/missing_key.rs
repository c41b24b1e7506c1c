use lockable_runtime::distributed_lock;

#[distributed_lock]
async fn nothing() {}

#[distributed_lock()]
async fn empty() {}

#[distributed_lock(expire = 10)]
async fn no_key() {}

fn main() {}
