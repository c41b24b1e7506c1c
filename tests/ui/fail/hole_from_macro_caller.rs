use lockable_runtime::distributed_lock;

macro_rules! locked {
    ($key:literal) => {
        #[distributed_lock(key = $key)]
        async fn settle(id: u64) {}
    };
}

locked!("order:{id}");

fn main() {}
