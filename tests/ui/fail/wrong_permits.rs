use lockable_runtime::distributed_lock;

#[distributed_lock(key = "a", permits = 0)]
async fn none() {}

#[distributed_lock(key = "a", permits = 65)]
async fn too_many() {}

#[distributed_lock(key = "a", permits = "3")]
async fn a_text() {}

#[distributed_lock(key = "a", permits = all)]
async fn all_of_how_many() {}

#[distributed_lock(key = "a", permits = all(3, 4))]
async fn all_twice() {}

#[distributed_lock(keys = ["a", "b"], permits = 3)]
async fn of_several_keys() {}

#[distributed_lock(key = "a", permits = 3, wait, fair)]
async fn fair() {}

#[distributed_lock(key = "a", semaphore = 3)]
async fn semaphore() {}

#[distributed_lock(key = "a", permits = 3.5)]
async fn a_fraction() {}

fn main() {}
