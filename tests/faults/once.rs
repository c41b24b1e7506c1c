//! Runs with `once` whose end Redis does not learn of, or whose process dies.

use std::sync::Arc;
use std::time::Duration;

use lockable_runtime::{LockGuard, LockRequest, Locker};
use lockable_tests::cluster::slot;
use lockable_tests::sections::is_clean_everywhere;
use lockable_tests::{Cluster, Peer, Server, wait};
use tokio::task::JoinSet;

use crate::support::{KEY, LIMIT, LONG, WORKER, connect_ample, elapse, impatient};

#[tokio::test]
async fn a_killed_run_is_repeated() {
    let server = Server::start();
    let locker = impatient(&server.url()).connect().await.unwrap();
    let worker = Peer::start(WORKER, ["lead", &server.url(), "1000"]);
    assert_eq!(worker.hear(), "runs");
    let waiting = tokio::spawn(locker.lock("k").once().acquire());
    worker.kill();
    waiting.await.unwrap().unwrap().release().await.unwrap();
}

/// The release in the background leaves the lock done all the same.
#[tokio::test]
async fn a_run_is_done_when_redis_comes_back_within_its_lease() {
    let (server, locker, guard) = at_work(LONG).await;
    server.pause();
    assert!(guard.keep(LONG * 60).await.unwrap_err().is_unavailable());
    server.resume();
    let admin = server.admin();
    wait::until_async(LIMIT, async || admin.get(KEY).unwrap().starts_with('~')).await;
    assert!(admin.pttl(KEY) > 3_000_000);
    assert!(locker.lock("k").once().acquire().await.unwrap_err().is_done());
}

#[tokio::test]
async fn a_run_is_repeated_when_redis_stays_away_or_forgets() {
    let (server, locker, guard) = at_work(Duration::from_secs(1)).await;
    server.pause();
    assert!(guard.keep(LONG * 60).await.is_err());
    elapse(Duration::from_secs(1)).await;
    server.resume();
    let guard = locker.lock("k").once().acquire().await.unwrap();
    guard.keep(LONG * 60).await.unwrap();
    server.admin().flush();
    locker.lock("k").once().acquire().await.unwrap().release().await.unwrap();
}

async fn at_work(lease: Duration) -> (Server, Locker, LockGuard) {
    let server = Server::start();
    let locker = impatient(&server.url()).connect().await.unwrap();
    let guard = locker.lock("k").expire(lease).once().acquire().await.unwrap();
    (server, locker, guard)
}

/// Goal: a run that has ended well is done while its slot is between two masters, and after that; one that has failed
/// runs again.
/// Method: the run is at work, and waited for, when the move begins. Each trial moves another part of the keys of its
/// slot. Half of the runs fail; then the call that has waited runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_done_in_a_slot_that_is_between_two_masters() {
    let cluster = Arc::new(Cluster::builder().shards(2).replicas(0).steady().start());
    let lockers = [connect_ample(&cluster.url()).await, connect_ample(&cluster.url()).await];
    let mut trials = JoinSet::new();
    for number in 0..16 {
        let (cluster, lockers) = (Arc::clone(&cluster), lockers.clone());
        trials.spawn(Trial { number, cluster, lockers }.run());
    }
    trials.join_all().await;
    cluster.wait_until_healthy();
    is_clean_everywhere(&cluster).await;
}

/// One slot.
struct Trial {
    /// Its bits are the keys that are moved, and whether the run fails.
    number: u8,
    cluster: Arc<Cluster>,
    lockers: [Locker; 2],
}

impl Trial {
    async fn run(self) {
        let [from, to]: [&Server; 2] =
            self.cluster.first_masters().collect::<Vec<_>>().try_into().unwrap();
        let name = self.cluster.name_at(from, &format!("disLock:{}-", self.number));
        let guard = self.request(0, &name).acquire().await.unwrap();
        let waiting = tokio::spawn(self.request(1, &name).wait(LONG).acquire());
        let (admin, queue) = (from.admin(), format!("lockable:queue:{{{name}}}"));
        let is_queued = || admin.command::<usize>(&["LLEN", &queue]) == 1;
        tokio::task::block_in_place(|| wait::until(LIMIT, is_queued));
        let names = self.cluster.begin_move_of(slot(&name), to, self.number);
        // The lock, its fence counter and its queue.
        assert_eq!(names.len(), 3, "{names:?}");
        if self.number & 8 == 0 {
            guard.keep(LONG * 60).await.unwrap();
            assert!(waiting.await.unwrap().unwrap_err().is_done());
        } else {
            guard.release().await.unwrap();
            waiting.await.unwrap().unwrap().keep(LONG * 60).await.unwrap();
        }
        self.is_done(&name).await;
        self.cluster.end_move(slot(&name)).unwrap();
        self.is_done(&name).await;
        to.admin().del(&name);
    }

    async fn is_done(&self, name: &str) {
        for locker in [0, 1] {
            for limit in [Duration::ZERO, LONG] {
                let outcome = self.request(locker, name).wait(limit).acquire().await;
                assert!(outcome.unwrap_err().is_done(), "{}", self.number);
            }
        }
    }

    fn request(&self, locker: usize, name: &str) -> LockRequest {
        self.lockers[locker].lock(name.trim_start_matches("disLock:")).once()
    }
}
