//! Waiting by shard channels: which there are, and what ends them.

use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Admin, Cluster, Server, wait};
use rstest::rstest;
use tokio::task::{JoinHandle, JoinSet};

use crate::support::{LIMIT, connect, patient};
use crate::waiting::support::{AT_ONCE, RECHECK, process, within};

/// Goal: a hand-off between two processes is as fast on each shard as on one server, because the recheck
/// comes after 0.8 seconds.
#[tokio::test]
async fn hand_offs_take_round_trips_on_every_shard() {
    const HAND_OFFS: usize = 30;
    let cluster = Cluster::shared();
    let lockers = [connect(&cluster.url()).await, connect(&cluster.url()).await];
    for master in cluster.first_masters() {
        let lock = Lock::at(&cluster, master, "turns:");
        let mut guard = lockers[0].lock(&lock.key).acquire().await.unwrap();
        let last = within("thirty hand-offs", 3 * AT_ONCE, async {
            for number in 1..=HAND_OFFS {
                let next = waiter(&lockers[number % 2], &lock.key);
                lock.queued(1).await;
                guard.release().await.unwrap();
                guard = next.await.unwrap();
            }
            guard
        })
        .await;
        last.release().await.unwrap();
        lock.is_over().await;
    }
}

#[tokio::test]
async fn a_killed_waiter_costs_nothing_on_a_cluster() {
    let cluster = Cluster::shared();
    let url = format!("{}?prefix=killed:", cluster.url());
    let master = cluster.master_of("killed:k");
    let lock = Lock::named(master, "k", "killed:k");
    let guard = connect(&url).await.lock("k").acquire().await.unwrap();
    let mut head = process(&url);
    head.say("wait 60000");
    lock.queued(1).await;
    let heads_channel = lock.channels().remove(0);
    let waiter = waiter(&connect(&url).await, "k");
    lock.queued(2).await;
    drop(head.kill());
    wait::until_async(LIMIT, async || !lock.has_listener(&heads_channel)).await;
    guard.release().await.unwrap();
    is_served("head killed", AT_ONCE, waiter).await;
    lock.is_over().await;
}

/// Of ten locks of one slot, and one lock of another.
#[tokio::test]
async fn waiters_of_a_slot_share_one_channel() {
    let cluster = two_masters();
    let (locker, other) = (connect(&cluster.url()).await, connect(&cluster.url()).await);
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
        is_served("one of many", LIMIT, waiter).await;
    }
    assert_eq!(admin.command_calls("ssubscribe"), 2);
    assert_eq!(admin.keys("*"), admin.keys("lockable:fence:*"));
    ends_without_channels(&cluster).await;
}

/// Goal: a slot that moves while others are subscribed to gives no call a wrong confirmation. The message of
/// the node looks like an answer.
/// Method: a thousand lines subscribe while a reshard moves half of the slots to and fro, and a master is
/// failed over as planned.
#[tokio::test(flavor = "multi_thread")]
async fn slots_move_among_a_thousand_waiters() {
    const LINES: usize = 1_000;
    let cluster = Cluster::builder().shards(2).replicas(2).start();
    let (locker, holder) = (connect(&cluster.url()).await, connect(&cluster.url()).await);
    let (mut guards, mut waiters) = (Vec::new(), JoinSet::new());
    for line in 0..LINES {
        guards.push(holder.lock(format!("n:{line}")).acquire().await.unwrap());
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let [one, two] = masters(&cluster);
            cluster.reshard(300, one, two).unwrap();
            cluster.reshard(300, two, one).unwrap();
            cluster.fail_over("disLock:n:0");
            cluster.wait_until_healthy();
        });
        for line in 0..LINES {
            waiters.spawn(locker.lock(format!("n:{line}")).wait_at_most(LIMIT).acquire());
        }
    });
    let admins: Vec<_> = cluster.servers().map(Server::admin).collect();
    // More than one for each slot: connections were given up at messages that no one had asked for.
    let asked: u64 = admins.iter().map(|admin| admin.command_calls("ssubscribe")).sum();
    println!("{asked} subscriptions");
    // A line asks again within this time, and has its channel then.
    let listen = async || listened_to(&admins) >= LINES * 9 / 10;
    wait::until_async(LIMIT, listen).await;
    within("a thousand hand-offs", RECHECK, async {
        let mut releases: JoinSet<_> = guards.into_iter().map(LockGuard::release).collect();
        while let Some(served) = waiters.join_next().await {
            releases.spawn(served.unwrap().unwrap().release());
        }
        releases.join_all().await.into_iter().for_each(Result::unwrap);
    })
    .await;
    is_clean(&cluster).await;
    ends_without_channels(&cluster).await;
}

#[tokio::test]
async fn a_moved_slot_costs_its_waiters_one_question() {
    let cluster = two_masters();
    let [one, two] = masters(&cluster);
    let lock = Lock::at(&cluster, one, "moves:");
    let guard = connect(&cluster.url()).await.lock(&lock.key).acquire().await.unwrap();
    let waiter = waiter(&connect(&cluster.url()).await, &lock.key);
    lock.queued(1).await;
    let channels = lock.channels();
    cluster.begin_move(lock.slot(), two);
    cluster.end_move(lock.slot()).unwrap();
    let moved = Lock { admin: two.admin(), ..lock };
    let listens = async || moved.has_listener(&channels[0]);
    within("listening at the new master", AT_ONCE, wait::until_async(LIMIT, listens)).await;
    guard.release().await.unwrap();
    is_served("slot moved", AT_ONCE, waiter).await;
    moved.is_over().await;
}

/// The master of the other shard is killed, and has no replica.
#[tokio::test]
async fn a_killed_master_disturbs_no_other_shard() {
    let cluster =
        Cluster::builder().shards(3).replicas(0).config("cluster-require-full-coverage", "no");
    let cluster = cluster.start();
    let lockers = [connect(&cluster.url()).await, connect(&cluster.url()).await];
    let mut locks: Vec<_> =
        cluster.first_masters().map(|master| Lock::at(&cluster, master, "of:")).collect();
    let (mut guards, mut waiters) = (Vec::new(), Vec::new());
    for lock in &locks {
        guards.push(lockers[0].lock(&lock.key).acquire().await.unwrap());
        waiters.push(waiter(&lockers[1], &lock.key));
        lock.queued(1).await;
    }
    cluster.first_masters().next().unwrap().kill();
    let (_killed, _lost, waits) = (locks.remove(0), guards.remove(0), waiters.remove(0));
    for ((lock, guard), waiter) in locks.iter().zip(guards).zip(waiters) {
        guard.release().await.unwrap();
        is_served("another shard", AT_ONCE, waiter).await;
        lock.is_over().await;
    }
    waits.abort();
}

#[tokio::test]
async fn a_killed_subscription_of_a_node_comes_back() {
    let cluster = two_masters();
    let [one, _] = masters(&cluster);
    let lock = Lock::at(&cluster, one, "back:");
    let guard = connect(&cluster.url()).await.lock(&lock.key).acquire().await.unwrap();
    let locker = connect(&cluster.url()).await;
    let first = waiter(&locker, &lock.key);
    lock.queued(1).await;
    let channels = lock.channels();
    assert_eq!(lock.admin.command::<u64>(&["CLIENT", "KILL", "TYPE", "pubsub"]), 1);
    let listens = async || lock.has_listener(&channels[0]);
    within("listening again", AT_ONCE, wait::until_async(LIMIT, listens)).await;
    guard.release().await.unwrap();
    is_served("subscription killed", AT_ONCE, first).await;
    lock.is_over().await;
    // Another process may have been started from this one's image.
    let guard = connect(&cluster.url()).await.lock(&lock.key).acquire().await.unwrap();
    let second = waiter(&locker, &lock.key);
    lock.queued(1).await;
    assert_eq!(lock.channels().len(), 2);
    assert!(!channels.contains(&lock.channel_of_waiter()));
    guard.release().await.unwrap();
    is_served("with another origin", AT_ONCE, second).await;
    lock.is_over().await;
}

/// The grants are published by the one that holds the lock, and heard by the one that waits.
#[rstest]
#[case::subscribe("-ssubscribe")]
#[case::publish("-spublish")]
#[tokio::test]
async fn without_the_right_to_channels_calls_ask(#[case] missing: &str) {
    let rules = format!("on >secret ~* &* +@all {missing}");
    let cluster = Cluster::builder().shards(1).replicas(0).user("locks", &rules).start();
    let url = cluster.url_with("locks", "secret");
    let lock = Lock::at(&cluster, masters_of(&cluster)[0], "asks:");
    let guard = connect(&url).await.lock(&lock.key).acquire().await.unwrap();
    let waiter = waiter(&patient(&url).connect().await.unwrap(), &lock.key);
    lock.queued(1).await;
    guard.release().await.unwrap();
    is_served(missing, RECHECK, waiter).await;
    lock.is_over().await;
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
        lockable_tests::cluster::slot(&self.name)
    }

    fn queue(&self) -> String {
        format!("lockable:queue:{{{}}}", self.name)
    }

    async fn queued(&self, count: usize) {
        let queue = self.queue();
        let queued = async || self.admin.command::<usize>(&["LLEN", &queue]) == count;
        wait::until_async(LIMIT, queued).await;
    }

    /// In the end the lock has no holder, and the queue is empty.
    async fn is_over(&self) {
        let queue = self.queue();
        let is_over = async || self.admin.command::<usize>(&["EXISTS", &self.name, &queue]) == 0;
        wait::until_async(LIMIT, is_over).await;
    }

    /// The channels on this lock's slot that are listened to.
    fn channels(&self) -> Vec<String> {
        let channels = shard_channels(&self.admin).into_iter();
        channels.filter(|name| lockable_tests::cluster::slot(name) == self.slot()).collect()
    }

    fn has_listener(&self, channel: &str) -> bool {
        let counts: (String, u64) = self.admin.command(&["PUBSUB", "SHARDNUMSUB", channel]);
        counts.1 > 0
    }

    /// Where the grant to the only waiter is published.
    fn channel_of_waiter(&self) -> String {
        let entry =
            self.admin.command::<Vec<String>>(&["LRANGE", &self.queue(), "0", "-1"]).remove(0);
        let (_, owner) = entry.split_once(' ').unwrap();
        let (origin, _) = owner.split_once('.').unwrap();
        let is_its = |name: &String| name.contains(&format!(":grant:{origin}:"));
        self.channels().into_iter().find(is_its).unwrap()
    }
}

fn waiter(locker: &Locker, key: &str) -> JoinHandle<LockGuard> {
    let request = locker.lock(key).wait_at_most(LIMIT);
    tokio::spawn(async move { request.acquire().await.unwrap() })
}

async fn is_served(what: &str, bound: Duration, waiter: JoinHandle<LockGuard>) {
    let guard = within(what, bound, waiter).await.unwrap();
    guard.release().await.unwrap();
}

fn two_masters() -> Cluster {
    Cluster::builder().shards(2).replicas(0).start()
}

fn masters(cluster: &Cluster) -> [&Server; 2] {
    masters_of(cluster).try_into().unwrap()
}

fn masters_of(cluster: &Cluster) -> Vec<&Server> {
    cluster.first_masters().collect()
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

async fn is_clean(cluster: &Cluster) {
    for server in cluster.servers() {
        let admin = server.admin();
        let is_clean = async || admin.keys("*") == admin.keys("lockable:fence:*");
        wait::until_async(LIMIT, is_clean).await;
    }
}

/// Channels are left that no call has listened to for a while, and the connection with the last.
async fn ends_without_channels(cluster: &Cluster) {
    let admins: Vec<_> = cluster.servers().map(Server::admin).collect();
    let is_left =
        async || listened_to(&admins) == 0 && admins.iter().all(|admin| subscriptions(admin) == 0);
    wait::until_async(2 * LIMIT, is_left).await;
}
