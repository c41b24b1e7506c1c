use lockable_runtime::distributed_lock;

trait Job {
    #[distributed_lock(key = "k")]
    async fn run(&self);

    #[distributed_lock(key = "k")]
    fn settle();
}

fn main() {}
