use lockable_runtime::distributed_lock;

#[distributed_lock(key = "a", prefix = "shop:{id}:", expire = 10)]
async fn hole(id: u64) {}

struct Till(u64);

impl Till {
    #[distributed_lock(key("{}", line.0), prefix = "{shop}:{self.0}{x}:")]
    fn field(&self, line: (u8,)) {}
}

#[distributed_lock(key = "a", prefix = "{{shop}}:")]
async fn doubled(shop: &str) {}

#[distributed_lock(key = "order:{id}", prefix = format!("{shop}:"))]
async fn formatted(shop: &str, id: u64) {}

#[distributed_lock(key = "order:{id}", prefix = "shop:{")]
async fn braces(id: u64) {}

#[distributed_lock(key = "order{{:{id}", prefix = "shop:")]
async fn braces_of_the_key(id: u64) {}

#[distributed_lock(key = "order:{id}", prefix = "{shop}:")]
async fn hash_tag(id: u64) {}

fn main() {}
