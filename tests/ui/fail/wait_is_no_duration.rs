use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", wait = true)]
async fn switched_on() {}

#[distributed_lock(key = "k", wait = false)]
async fn switched_off() {}

#[distributed_lock(key = "k", wait = "forever")]
async fn word() {}

#[distributed_lock(key = "k", wait = 3s)]
async fn without_quotes() {}

#[distributed_lock(key = "k", wait = 1.5)]
async fn fraction() {}

#[distributed_lock(key = "k", wait(3))]
async fn parentheses() {}

#[distributed_lock(key = "k", wait = )]
async fn nothing() {}

#[distributed_lock(key = "k", wait = forever)]
async fn bare_word() {}

#[distributed_lock(key = "k", wait = Wait::Forever)]
async fn variant() {}

#[distributed_lock(key = "k", wait = forever)]
async fn parameter(forever: std::time::Duration) {}

fn main() {}
