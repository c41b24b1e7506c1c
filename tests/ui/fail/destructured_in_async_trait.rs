use async_trait::async_trait;
use lockable_runtime::distributed_lock;

pub struct Order {
    id: u64,
}

#[async_trait]
pub trait Job {
    #[distributed_lock(key = "order:{id}")]
    async fn settle(&self, Order { id }: Order) -> Option<u64> {
        Some(id)
    }

    #[distributed_lock(key("order:{}:{id}", a + 1, id = b))]
    async fn cancel(&self, (a, b): (u64, u64)) -> Option<u64> {
        Some(a + b)
    }

    #[distributed_lock(key = "order:{id}")]
    async fn works(&self, id: u64, (a, b): (u64, u64)) -> Option<u64> {
        Some(id + a + b)
    }
}

fn main() {}
