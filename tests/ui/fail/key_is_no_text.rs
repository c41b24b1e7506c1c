use lockable_runtime::distributed_lock;

#[distributed_lock(key = b"bytes")]
async fn bytes() {}

#[distributed_lock(key = 10)]
async fn number() {}

#[distributed_lock(key('x'))]
async fn character() {}

#[distributed_lock(key(NAME))]
async fn template() {}

fn main() {}
