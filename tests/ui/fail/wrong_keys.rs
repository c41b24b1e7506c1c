use lockable_runtime::{distributed_lock, lock_key};

#[distributed_lock(key = "a", keys = ["b", "c"])]
async fn both() {}

#[distributed_lock(key = ["account:{from}", "account:{to}"])]
async fn key_list(from: u8, to: u8) {}

#[distributed_lock(keys = "account:{from}")]
async fn no_list(from: u8) {}

#[distributed_lock(keys = ["account:{from}"])]
async fn one(from: u8) {}

#[distributed_lock(keys = [])]
async fn none() {}

#[distributed_lock(keys = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17"])]
async fn seventeen() {}

#[distributed_lock(keys = ["account:{from}", order.to])]
async fn mixed(from: u8, order: Order) {}

#[distributed_lock(names = ["account:{from}", "account:{to}"])]
async fn by_another_name(from: u8, to: u8) {}

struct Order {
    to: u8,
}

fn main() {
    let _ = lock_key!("sku:{id:?}");
    let _ = lock_key!();
}
