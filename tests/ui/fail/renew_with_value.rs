use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", renew = true)]
async fn switch() {}

#[distributed_lock(key = "k", renew = "3s")]
async fn interval() {}

#[distributed_lock(key = "k", renew(every = "3s"))]
async fn parentheses() {}

fn main() {}
