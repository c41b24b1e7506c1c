use super::*;
use crate::core::types::key::LockKey;
use crate::core::types::options::Ttl;

mod replies;

/// glibc's allocator has such a block at hand; a larger one costs a thousand instructions.
const AT_HAND: usize = 1_032;

#[test]
fn the_futures_of_a_pair_fit_blocks_at_hand() {
    let settings = Settings { url: "redis://127.0.0.1:1".to_owned(), ..Settings::default() };
    let redis = Redis::open(&settings).unwrap();
    let attempt = Arc::new(Attempt::drawn(LockKey::from_static("k"), Ttl::DEFAULT));
    let acquire = size_of_val(&*redis.try_acquire(Arc::clone(&attempt)));
    let release = size_of_val(&*redis.release(attempt));
    assert!(acquire.max(release) <= AT_HAND, "{acquire} and {release} bytes");
}
