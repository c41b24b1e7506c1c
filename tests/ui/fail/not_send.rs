use std::rc::Rc;

use lockable_runtime::distributed_lock;

#[distributed_lock(key = "k")]
async fn settle() {
    let local = Rc::new(1);
    std::future::ready(()).await;
    drop(local);
}

fn main() {
    fn assert_send<T: Send>(_: T) {}
    assert_send(settle());
}
