use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k")]
struct Order;

#[distributed_lock(key = "k")]
pub const LIMIT: u8 = 3;

#[distributed_lock(key = "k")]
impl Order {}

#[distributed_lock(key = "k")]
pub unsafe trait Job {}

#[distributed_lock(key = "k")]
pub mod jobs {}

fn main() {}
