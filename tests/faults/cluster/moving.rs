//! A slot that is left in the middle of its move, key by key.

use std::sync::Arc;
use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::cluster::slot;
use lockable_tests::sections::is_clean_everywhere;
use lockable_tests::{Cluster, Sections, Server, wait};
use tokio::task::{JoinHandle, JoinSet};

use crate::support::{LIMIT, LONG, connect_ample};

/// Goal: a migration that no one ends costs no lease and blocks no free lock.
/// Method: slots with a held lock, its queue and their fence counter are moved halfway, each with another
/// part of these keys, and left so until the lease was renewed twice.
#[tokio::test(flavor = "multi_thread")]
async fn locks_live_in_a_slot_that_is_between_two_masters() {
    let cluster = Arc::new(Cluster::builder().shards(2).replicas(0).steady().start());
    let lockers = [connect_ample(&cluster.url()).await, connect_ample(&cluster.url()).await];
    let sections = Arc::new(Sections::default());
    let mut trials = JoinSet::new();
    for number in 0..16 {
        let (cluster, sections) = (Arc::clone(&cluster), Arc::clone(&sections));
        trials.spawn(Trial { number, cluster, lockers: lockers.clone(), sections }.run());
    }
    trials.join_all().await;
    sections.assert_sound();
    cluster.wait_until_healthy();
    is_clean_everywhere(&cluster).await;
}

/// Goal: the lease of a call is never longer than its lock at the server.
/// Method: a lock is reserved for a call, for a second; its queue is gone by then, and the slot moves key by key, so that the
/// call acquires the lock by commands of one key each.
#[tokio::test]
async fn a_turn_that_is_kept_in_a_moving_slot_is_lengthened() {
    let cluster = Cluster::builder().shards(2).replicas(0).steady().start();
    let [from, to] = cluster.first_masters().collect::<Vec<_>>()[..] else { unreachable!() };
    let name = cluster.name_at(from, "disLock:");
    let key = name.trim_start_matches("disLock:").to_owned();
    let (holder, process) =
        (connect_ample(&cluster.url()).await, connect_ample(&cluster.url()).await);
    let guard = holder.lock(&key).acquire().await.unwrap();
    let (admin, call) = (from.admin(), tokio::spawn(process.lock(&key).wait(LONG).acquire()));
    wait::until_async(LIMIT, async || !admin.keys("lockable:queue:*").is_empty()).await;
    cluster.begin_move(slot(&name), to);
    guard.release().await.unwrap();
    let guard = wait::ends(call).await.unwrap().unwrap();
    // What is left of the lease is read first, so that the lock's rest may only be smaller.
    let (counted, left) = (guard.lease().remaining(), left_at([from, to], &name));
    let left = Duration::from_millis(left.try_into().expect("the lock is there, with an end"));
    assert!(LONG / 2 < counted && counted <= left, "{counted:?} of a lock that lasts for {left:?}");
    guard.release().await.unwrap();
    cluster.end_move(slot(&name)).unwrap();
}

/// What is left of the lock, which may be a new one at the node to which its slot moves.
fn left_at([from, to]: [&Server; 2], name: &str) -> i64 {
    let left = from.admin().try_command(&["PTTL", name]);
    left.ok().and_then(|left| redis::from_redis_value(left).ok()).unwrap_or_else(|| {
        let admin = to.admin();
        admin.command::<()>(&["ASKING"]);
        admin.pttl(name)
    })
}

/// It is renewed after a third of it: the rest is for a slow machine.
const LEASE: Duration = Duration::from_secs(9);

/// One slot.
struct Trial {
    /// Its bits are what is moved, and when the held lock is released.
    number: u8,
    cluster: Arc<Cluster>,
    lockers: [Locker; 2],
    sections: Arc<Sections>,
}

impl Trial {
    async fn run(self) {
        let [from, to] = self.masters();
        let tag = self.tag_at(from);
        let (held, free) = (format!("{tag}held"), format!("{tag}free"));
        let guard = self.lockers[0].lock(&held).expire(LEASE).renew().acquire().await.unwrap();
        self.sections.enter(&guard);
        let early = self.waiter(&held);
        wait_until_queued(from, &tag);
        self.cluster.begin_move(slot(&tag), to);
        self.move_some(from, &tag);
        let late = self.waiter(&held);
        for _ in 0..2 {
            self.use_free(&free).await;
            wait_until_renewed(&guard);
        }
        assert!(guard.lease().is_held(), "{}: {guard:?}", self.number);
        self.sections.leave(&guard);
        let guard = if self.is_released_early() {
            guard.release().await.unwrap();
            None
        } else {
            Some(guard)
        };
        self.cluster.end_move(slot(&tag)).unwrap();
        if let Some(guard) = guard {
            guard.release().await.unwrap();
        }
        for waiter in [early, late] {
            waiter.await.unwrap();
        }
        self.use_free(&free).await;
    }

    /// Half of the trials release the lock while its slot is in the middle of the move.
    fn is_released_early(&self) -> bool {
        self.number & 8 != 0
    }

    /// Moves those keys of the slot that the number says.
    fn move_some(&self, from: &Server, tag: &str) {
        let words = ["CLUSTER", "GETKEYSINSLOT", &slot(tag).to_string(), "10"];
        let mut names: Vec<String> = from.admin().command(&words);
        names.sort();
        // The names of a lock, of a fence counter and of a queue begin like this, in this order.
        let starts = ["disLock:", "lockable:fence:", "lockable:queue:"];
        let are_those = names.iter().zip(starts).all(|(name, start)| name.starts_with(start));
        assert!(names.len() == starts.len() && are_those, "{names:?}");
        let moved = names.iter().enumerate().filter(|(place, _)| self.number & (1 << place) != 0);
        for (_, name) in moved {
            assert_eq!(self.cluster.move_key(name), Ok(true));
        }
    }

    /// Acquires the lock as soon as it can, for a moment.
    fn waiter(&self, key: &str) -> JoinHandle<()> {
        let request = self.lockers[1].lock(key).wait(LONG);
        let sections = Arc::clone(&self.sections);
        tokio::spawn(async move { visit(request.acquire().await.unwrap(), &sections).await })
    }

    async fn use_free(&self, key: &str) {
        for locker in &self.lockers {
            visit(locker.lock(key).acquire().await.unwrap(), &self.sections).await;
        }
    }

    fn masters(&self) -> [&Server; 2] {
        self.cluster.first_masters().collect::<Vec<_>>().try_into().unwrap()
    }

    /// A hash tag with a slot of this master.
    fn tag_at(&self, master: &Server) -> String {
        let shard = self.cluster.shard_of(master);
        let mut tags = (0..).map(|number: u32| format!("{{{}:{number}}}", self.number));
        tags.find(|tag| shard.has(tag)).unwrap()
    }
}

fn wait_until_queued(master: &Server, tag: &str) {
    let (admin, pattern) = (master.admin(), format!("lockable:queue:*{tag}*"));
    tokio::task::block_in_place(|| wait::until(LIMIT, || !admin.keys(&pattern).is_empty()));
}

fn wait_until_renewed(guard: &LockGuard) {
    let mut before = guard.lease().remaining();
    let is_renewed =
        || guard.lease().remaining() > std::mem::replace(&mut before, guard.lease().remaining());
    tokio::task::block_in_place(|| wait::until(LIMIT, is_renewed));
}

async fn visit(guard: LockGuard, sections: &Sections) {
    sections.enter(&guard);
    sections.leave(&guard);
    guard.release().await.unwrap();
}
