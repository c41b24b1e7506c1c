use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", expire)]
async fn word() {}

#[distributed_lock(key = "k", expire = )]
async fn nothing() {}

#[distributed_lock(key: "k")]
async fn colon() {}

#[distributed_lock(key = "k", expire(10))]
async fn parentheses() {}

fn main() {}
