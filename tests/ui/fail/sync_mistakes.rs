use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k")]
fn no_value_when_busy() -> bool {
    true
}

#[distributed_lock(key = "order:{idd}")]
fn misspelt_hole(id: u64) -> Option<u64> {
    Some(id)
}

#[distributed_lock(key = "k")]
fn body_of_another_type() -> Option<u64> {
    "text"
}

#[distributed_lock(key = "k", locker = lockable_runtime::Locker::connect("memory://").await.unwrap())]
fn awaits() -> Option<u64> {
    Some(1)
}

#[distributed_lock(key = "k")]
fn never_called(unused: u64) -> Option<u64> {
    let unused_too = 3;
    Some(1)
}

fn main() {}
