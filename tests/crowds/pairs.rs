//! What acquiring and releasing allocates without a subscriber or a recorder.

use lockable_runtime::Locker;
use tokio::runtime::Builder;

use crate::{MEMORY, alone_with};

/// How often a pair allocates, which is as often as without logs and metrics.
const ALLOCATIONS: usize = 9;

const PAIRS: usize = 1_000;

/// Goal: spans, events and metrics cost nothing while there is no subscriber and no recorder.
/// Method: the allocations of pairs are counted, with both compiled in. Tables grow by doubling, so
/// a thousand pairs may have a few more.
#[test]
fn an_uncontended_pair_allocates_as_little_as_ever() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    alone_with(&runtime, async {
        let locker = Locker::connect("memory://").await.unwrap();
        pairs(&locker).await;
        let before = MEMORY.stats().allocations;
        pairs(&locker).await;
        let each = (MEMORY.stats().allocations - before) / PAIRS;
        println!("{each} allocations a pair");
        assert!(each <= ALLOCATIONS, "{each} allocations a pair");
    });
}

async fn pairs(locker: &Locker) {
    for _ in 0..PAIRS {
        locker.lock("pair").acquire().await.unwrap().release().await.unwrap();
    }
}
