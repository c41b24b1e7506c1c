use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", on_lost = abort)]
async fn another_word() {}

#[distributed_lock(key = "k", on_lost = "cancel")]
async fn quotes() {}

#[distributed_lock(key = "k", on_lost = OnLost::Finish)]
async fn path() {}

fn main() {}
