use lockable_runtime::distributed_lock;

unsafe extern "C" {
    #[distributed_lock(key = "k")]
    fn settle();

    #[distributed_lock(key = "k")]
    pub safe fn count(id: u64) -> u64;
}

fn main() {}
