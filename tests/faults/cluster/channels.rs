//! Waiting by shard channels: which there are, and what ends them.

use std::collections::HashSet;

use lockable_runtime::{LockError, LockGuard, Locker};
use lockable_tests::cluster::slot;
use lockable_tests::sections::is_clean_everywhere;
use lockable_tests::{Admin, Cluster, Server, wait};
use tokio::task::{JoinHandle, JoinSet};

use crate::support::{LIMIT, LONG, connect_ample};
use crate::waiting::support::{connect, process};

/// Goal: a waiter hears of its grant, on each shard.
/// Method: it would ask again only once the test hangs.
#[tokio::test]
async fn hand_offs_are_heard_on_every_shard() {
    const HAND_OFFS: usize = 10;
    let cluster = Cluster::builder().replicas(0).steady().start();
    let [holder, other] = [connect(&cluster.url()).await, connect(&cluster.url()).await];
    for master in cluster.first_masters() {
        let lock = Lock::at(&cluster, master, "turns:");
        for _ in 0..HAND_OFFS {
            let guard = holder.lock(&lock.key).acquire().await.unwrap();
            let next = waiter(&other, &lock.key);
            lock.queued(1).await;
            guard.release().await.unwrap();
            lock.ends(wait::ends(next).await.unwrap()).await;
        }
    }
}

/// The release passes over who is not there any more.
#[tokio::test]
async fn a_killed_waiter_costs_nothing_on_a_cluster() {
    let cluster = Cluster::shared();
    let url = format!("{}?prefix=killed:", cluster.url());
    let master = cluster.master_of("killed:k");
    let lock = Lock::named(master, "k", "killed:k");
    let guard = connect_ample(&url).await.lock("k").acquire().await.unwrap();
    let mut head = process(&url);
    head.say("wait 60000");
    lock.queued(1).await;
    let heads_channel = lock.channels().remove(0);
    let waiter = waiter(&connect_ample(&url).await, "k");
    lock.queued(2).await;
    drop(head.kill());
    wait::until_async(LIMIT, async || !lock.has_listener(&heads_channel)).await;
    lock.is_handed_off(guard, waiter).await;
}

/// Of ten locks of one slot, and one lock of another.
#[tokio::test]
async fn waiters_of_a_slot_share_one_channel() {
    let cluster = two_masters();
    let (locker, other) =
        (connect_ample(&cluster.url()).await, connect_ample(&cluster.url()).await);
    let master = cluster.master_of("{a}");
    let admin = master.admin();
    let far = Lock::at(&cluster, master, "far:").key;
    let keys: Vec<_> = (0..10).map(|number| format!("{{a}}:{number}")).chain([far]).collect();
    let (mut guards, mut waiters) = (Vec::new(), Vec::new());
    for key in &keys {
        guards.push(other.lock(key).acquire().await.unwrap());
        waiters.extend((0..10).map(|_| waiter(&locker, key)));
    }
    wait::until_async(LIMIT, async || admin.keys("lockable:queue:*").len() == keys.len()).await;
    assert_eq!((shard_channels(&admin).len(), admin.command_calls("ssubscribe")), (2, 2));
    assert_eq!(subscriptions(&admin), 1);
    for guard in guards {
        guard.release().await.unwrap();
    }
    for waiter in waiters {
        waiter.await.unwrap().release().await.unwrap();
    }
    assert_eq!(admin.command_calls("ssubscribe"), 2);
    let is_over = async || admin.keys("*") == admin.keys("lockable:fence:*");
    wait::until_async(LIMIT, is_over).await;
    ends_without_channels(&cluster).await;
}

/// Goal: a slot that moves while others are subscribed to gives no call a wrong confirmation. The message of
/// the node looks like an answer.
/// Method: lines of the slots that a reshard moves to and fro subscribe meanwhile, and a master is failed over as
/// planned.
#[tokio::test(flavor = "multi_thread")]
async fn slots_move_among_hundreds_of_waiters() {
    const LINES: usize = 300;
    const SLOTS: usize = 150;
    let cluster = Cluster::start();
    cluster.set_node_timeout(LIMIT);
    let [one, two, _] = cluster.first_masters().collect::<Vec<_>>()[..] else { unreachable!() };
    let moving: HashSet<_> = cluster.slots_of(one).into_iter().take(SLOTS).collect();
    let keys = (0..).map(|line: usize| format!("n:{line}"));
    let keys: Vec<_> =
        keys.filter(|key| moving.contains(&slot(&format!("disLock:{key}")))).take(LINES).collect();
    let (locker, holder) =
        (connect_ample(&cluster.url()).await, connect_ample(&cluster.url()).await);
    let (mut guards, mut waiters) = (Vec::new(), JoinSet::new());
    for key in &keys {
        guards.push(holder.lock(key).acquire().await.unwrap());
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            cluster.reshard(SLOTS, one, two).unwrap();
            cluster.reshard(SLOTS, two, one).unwrap();
            // The next master has only the slots that it has heard of.
            cluster.wait_until_healthy();
            cluster.fail_over(guards[0].lease().key().as_str());
            cluster.wait_until_healthy();
        });
        for key in &keys {
            waiters.spawn(locker.lock(key).wait(LONG).acquire());
        }
    });
    let admins: Vec<_> = cluster.servers().map(Server::admin).collect();
    // A line asks again within 0.8 seconds, and has its channel then.
    let channels = keys.iter().map(|key| slot(&format!("disLock:{key}"))).collect::<HashSet<_>>();
    wait::until_async(LONG, async || listened_to(&admins) >= channels.len()).await;
    let mut releases: JoinSet<_> = guards.into_iter().map(LockGuard::release).collect();
    while let Some(served) = waiters.join_next().await {
        releases.spawn(served.unwrap().unwrap().release());
    }
    let ends = releases.join_all().await;
    // As in `Lock::ends`.
    assert!(ends.iter().all(|end| end.as_ref().err().is_none_or(LockError::is_lost)), "{ends:?}");
    is_clean_everywhere(&cluster).await;
}

#[tokio::test]
async fn waiters_listen_at_the_new_master_of_a_moved_slot() {
    let cluster = two_masters();
    let [one, two] = masters(&cluster);
    let lock = Lock::at(&cluster, one, "moves:");
    let (guard, waiter) = waited_for(&cluster, &lock).await;
    let channels = lock.channels();
    cluster.begin_move(lock.slot(), two);
    cluster.end_move(lock.slot()).unwrap();
    let moved = Lock { admin: two.admin(), ..lock };
    wait::until_async(LIMIT, async || moved.has_listener(&channels[0])).await;
    moved.is_handed_off(guard, waiter).await;
}

/// The master of the other shard is killed, and has no replica.
#[tokio::test]
async fn a_killed_master_disturbs_no_other_shard() {
    let cluster = Cluster::builder().replicas(0).steady();
    let cluster = cluster.config("cluster-require-full-coverage", "no").start();
    let mut waits = Vec::new();
    for master in cluster.first_masters() {
        let lock = Lock::at(&cluster, master, "of:");
        let (guard, waiter) = waited_for(&cluster, &lock).await;
        waits.push((lock, guard, waiter));
    }
    cluster.first_masters().next().unwrap().kill();
    let (_, _lost, without) = waits.remove(0);
    for (lock, guard, waiter) in waits {
        lock.is_handed_off(guard, waiter).await;
    }
    without.abort();
}

#[tokio::test]
async fn a_killed_subscription_of_a_node_comes_back() {
    let cluster = two_masters();
    let lock = Lock::at(&cluster, masters(&cluster)[0], "back:");
    let locker = connect_ample(&cluster.url()).await;
    let holder = connect_ample(&cluster.url()).await;
    let guard = holder.lock(&lock.key).acquire().await.unwrap();
    let first = waiter(&locker, &lock.key);
    lock.queued(1).await;
    let channels = lock.channels();
    assert_eq!(lock.admin.command::<u64>(&["CLIENT", "KILL", "TYPE", "pubsub"]), 1);
    wait::until_async(LIMIT, async || lock.has_listener(&channels[0])).await;
    lock.is_handed_off(guard, first).await;
}

/// A lock, and the master of its slot.
struct Lock {
    key: String,
    name: String,
    admin: Admin,
}

impl Lock {
    /// A lock of this master, whose key begins so.
    fn at(cluster: &Cluster, master: &Server, start: &str) -> Self {
        let name = cluster.name_at(master, &format!("disLock:{start}"));
        let key = name.strip_prefix("disLock:").unwrap();
        Self::named(master, key, &name)
    }

    fn named(master: &Server, key: &str, name: &str) -> Self {
        Self { key: key.to_owned(), name: name.to_owned(), admin: master.admin() }
    }

    fn slot(&self) -> u16 {
        slot(&self.name)
    }

    fn queue(&self) -> String {
        format!("lockable:queue:{{{}}}", self.name)
    }

    async fn queued(&self, count: usize) {
        let queued = async || self.admin.command::<usize>(&["LLEN", &self.queue()]) == count;
        wait::until_async(LIMIT, queued).await;
    }

    /// The release publishes the grant, as it does only to one who listens: else the waiter would have to ask again.
    async fn is_handed_off(&self, guard: LockGuard, waiter: JoinHandle<LockGuard>) {
        let published = || self.admin.command_calls("spublish");
        let before = published();
        guard.release().await.unwrap();
        assert!(published() > before, "the release found no one who listens");
        self.ends(waiter.await.unwrap()).await;
    }

    /// In the end the lock has no holder, and the queue is empty.
    async fn ends(&self, guard: LockGuard) {
        guard.release().await.unwrap();
        let queue = self.queue();
        let is_over = async || self.admin.command::<usize>(&["EXISTS", &self.name, &queue]) == 0;
        wait::until_async(LIMIT, is_over).await;
    }

    /// The channels on this lock's slot that are listened to.
    fn channels(&self) -> Vec<String> {
        let channels = shard_channels(&self.admin).into_iter();
        channels.filter(|name| slot(name) == self.slot()).collect()
    }

    fn has_listener(&self, channel: &str) -> bool {
        let counts: (String, u64) = self.admin.command(&["PUBSUB", "SHARDNUMSUB", channel]);
        counts.1 > 0
    }
}

/// A process holds the lock, and another one waits for it.
async fn waited_for(cluster: &Cluster, lock: &Lock) -> (LockGuard, JoinHandle<LockGuard>) {
    let holder = connect_ample(&cluster.url()).await;
    let guard = holder.lock(&lock.key).acquire().await.unwrap();
    let waiter = waiter(&connect_ample(&cluster.url()).await, &lock.key);
    lock.queued(1).await;
    (guard, waiter)
}

fn waiter(locker: &Locker, key: &str) -> JoinHandle<LockGuard> {
    let request = locker.lock(key).wait(LONG);
    tokio::spawn(async move { request.acquire().await.unwrap() })
}

fn two_masters() -> Cluster {
    Cluster::builder().shards(2).replicas(0).steady().start()
}

fn masters(cluster: &Cluster) -> [&Server; 2] {
    cluster.first_masters().collect::<Vec<_>>().try_into().unwrap()
}

fn shard_channels(admin: &Admin) -> Vec<String> {
    admin.command(&["PUBSUB", "SHARDCHANNELS", "lockable:grant:*"])
}

/// How many channels there are at all nodes.
fn listened_to(admins: &[Admin]) -> usize {
    admins.iter().map(|admin| shard_channels(admin).len()).sum()
}

fn subscriptions(admin: &Admin) -> usize {
    admin.command::<String>(&["CLIENT", "LIST", "TYPE", "pubsub"]).lines().count()
}

/// Channels are left that no call has listened to for a while, and the connection with the last.
async fn ends_without_channels(cluster: &Cluster) {
    let admins: Vec<_> = cluster.servers().map(Server::admin).collect();
    let is_left =
        async || listened_to(&admins) == 0 && admins.iter().all(|admin| subscriptions(admin) == 0);
    wait::until_async(LIMIT, is_left).await;
}
