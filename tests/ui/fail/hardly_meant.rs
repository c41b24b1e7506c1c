#![deny(warnings)]

use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", expire = 60000, wait = 3_000)]
async fn milliseconds() {}

#[distributed_lock(key = "k", renew, max_hold = 600_000u64, expire = "2h", min_hold = 1000)]
fn milliseconds_of_holds() {}

#[distributed_lock(key = "k", expire = "60000s", wait = "3000s", renew, max_hold = "6000s", min_hold = "1000s")]
async fn seconds() {}

#[distributed_lock(key = "k", min_hold = "30s")]
async fn min_hold_alone() {}

#[distributed_lock(key = "k", min_hold = "30s", expire = "30s")]
async fn min_hold() {}

#[distributed_lock(key = "k", wait, on_busy = skip)]
async fn idle_on_busy() {}

#[distributed_lock(key = "k", wait = "3s", on_busy = skip)]
async fn on_busy() {}

#[allow(deprecated)]
#[distributed_lock(key = "k", wait, expire = 10_000, on_busy = skip)]
async fn allowed() {}

fn main() {
    drop((milliseconds(), milliseconds_of_holds(), seconds(), min_hold_alone()));
    drop((min_hold(), idle_on_busy(), on_busy(), allowed()));
}
