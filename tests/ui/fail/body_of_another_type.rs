use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k")]
async fn tail() -> Option<u8> {
    "text"
}

#[distributed_lock(key = "k")]
async fn statement() -> Option<u8> {
    let number: u8 = "text";
    Some(number)
}

#[distributed_lock(key = "k")]
async fn missing() -> Option<u8> {}

#[distributed_lock(key = "k")]
async fn unit() {
    5
}

fn main() {}
