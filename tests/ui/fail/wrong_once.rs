use lockable_runtime::distributed_lock;

const HOURS: u64 = 24;

#[distributed_lock(key = "k", once)]
async fn no_period() {}

#[distributed_lock(key = "k", once = 0)]
async fn no_time_at_all() {}

#[distributed_lock(key = "k", once = HOURS)]
async fn number() {}

#[distributed_lock(key = "k", once = "24h", min_hold = "5s")]
async fn both() {}

#[distributed_lock(key = "k", once_for = "24h", keep = "24h")]
async fn by_other_names() {}

fn main() {}
