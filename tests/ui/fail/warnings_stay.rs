#![deny(warnings, dead_code)]

use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k", guard = lock)]
async fn unused(mut counted: u8, never: u8) -> Option<u8> {
    use std::fmt::Debug;
    let local = 3;
    return Some(counted);
    drop(1);
}

fn main() {}
