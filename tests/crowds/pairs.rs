//! What acquiring and releasing allocates without a subscriber or a recorder.

use lockable_runtime::Locker;
use metrics::NoopRecorder;
use tokio::runtime::Builder;

use crate::{MEMORY, alone_with};

/// How often a pair allocates, which is as often as without logs and metrics.
const ALLOCATIONS: usize = 9;

const PAIRS: usize = 1_000;

const ROUNDS: usize = 50;

/// Goal: spans, events and metrics cost nothing while there is no subscriber and no recorder.
/// Method: the allocations of pairs are counted, with both compiled in. Tables grow by doubling, so
/// a thousand pairs may have a few more. What the tests before have left in the background allocates too, for a while;
/// so the first round counts that has no more.
#[test]
fn an_uncontended_pair_allocates_as_little_as_ever() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    alone_with(&runtime, async {
        let locker = Locker::connect("memory://").await.unwrap();
        let each = least(async || pairs(&locker).await).await;
        println!("{each} allocations a pair");
        assert!(each <= ALLOCATIONS, "{each} allocations a pair");
    });
}

/// Goal: counting by lock costs no allocation either, with a recorder and with one that comes late, of few labels
/// and of many.
/// Method: the recorder is one that allocates nothing itself. The first pairs store the names of each label's metrics.
#[test]
fn counting_by_lock_allocates_nothing() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let labels: Vec<&'static str> = (0..200).map(|n| &*format!("pair:{n}").leak()).collect();
    let allocated = || {
        let mut each = 0;
        alone_with(&runtime, async {
            let locker = Locker::connect("memory://").await.unwrap();
            each = least(async || labeled_pairs(&locker, &labels).await).await;
        });
        each
    };
    let each = [allocated(), metrics::with_local_recorder(&NoopRecorder, allocated)];
    println!("{each:?} allocations a pair, without a recorder and with one");
    assert!(each.iter().all(|each| *each <= ALLOCATIONS), "{each:?} allocations a pair");
}

/// How often a pair has allocated in the round that did it least.
async fn least(round: impl AsyncFn()) -> usize {
    let mut least = usize::MAX;
    for _ in 0..ROUNDS {
        let before = MEMORY.stats().allocations;
        round().await;
        least = least.min((MEMORY.stats().allocations - before) / PAIRS);
        if least <= ALLOCATIONS {
            break;
        }
    }
    least
}

async fn labeled_pairs(locker: &Locker, labels: &[&'static str]) {
    for label in labels.iter().cycle().take(PAIRS) {
        locker.lock("pair").label(label).acquire().await.unwrap().release().await.unwrap();
    }
}

async fn pairs(locker: &Locker) {
    for _ in 0..PAIRS {
        locker.lock("pair").acquire().await.unwrap().release().await.unwrap();
    }
}
