use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", expire = "10")]
async fn no_unit() {}

#[distributed_lock(key = "k", expire = 10s)]
async fn no_quotes() {}

#[distributed_lock(key = "k", expire = 1.5)]
async fn fraction() {}

#[distributed_lock(key = "k", expire = "30s1m")]
async fn order() {}

fn main() {}
