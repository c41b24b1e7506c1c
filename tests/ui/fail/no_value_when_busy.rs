use std::fmt::Display;

use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k")]
async fn number() -> u32 {
    3
}

#[distributed_lock(key = "k")]
async fn list() -> Vec<u8> {
    vec![]
}

#[distributed_lock(key = "k")]
async fn hidden() -> impl Display {
    3
}

fn main() {}
