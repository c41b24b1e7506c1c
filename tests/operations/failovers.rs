//! Failovers to replicas that did not receive the newest locks, with and without confirmations.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Admin, Sentinels, long_form};
use tokio::task::JoinHandle;

use crate::support::{LONG, builder, until};

/// Goal: a failover loses no lock that all replicas have confirmed, and some of those that none has.
/// Method: two lockers acquire locks as fast as they can. Meanwhile the replicas are cut off, and the primary is killed.
#[tokio::test(flavor = "multi_thread")]
async fn failovers_lose_no_lock_that_replicas_confirmed() {
    let rounds = long_form(1, 100);
    // Two groups at a time, which mostly wait.
    let (one, other) = tokio::join!(in_turn(rounds), in_turn(rounds));
    let [mut plain, mut confirmed] = one;
    plain.add(other[0]);
    confirmed.add(other[1]);
    println!("{} failovers: {plain:?}, with confirmations {confirmed:?}", 2 * rounds);
    assert!(plain.lost > 0, "the failovers lost nothing");
    assert_eq!(confirmed.lost, 0);
}

async fn in_turn(rounds: usize) -> [Count; 2] {
    let mut counts = [Count::default(); 2];
    for _ in 0..rounds {
        let round = round().await;
        counts.iter_mut().zip(round).for_each(|(count, of)| count.add(of));
    }
    counts
}

/// What a failover made of the locks that were held.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    held: usize,
    lost: usize,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.held += other.held;
        self.lost += other.lost;
    }
}

/// Without confirmations and with them.
async fn round() -> [Count; 2] {
    let group = Sentinels::start();
    let builder = || builder(&group.url()).command_deadline(DEADLINE);
    let plain = Load::start("plain", builder().connect().await.unwrap());
    let confirmed = Load::start("confirmed", builder().replicas(2).connect().await.unwrap());
    let admin = group.primary().admin();
    let held = |load: &Load| count(&admin, load.name);
    until(async || held(&plain) >= FEW && held(&confirmed) >= FEW).await;
    let mut switches = group.switches();
    group.pause_replicas();
    let before = held(&plain);
    until(async || held(&plain) >= before + FEW).await;
    group.kill_primary();
    group.resume_replicas();
    switches.next().await;
    group.set_down_after(LONG);
    let after = group.primary().admin();
    let mut counts = Vec::new();
    for load in [plain, confirmed] {
        let guards = load.end().await;
        let is_lost = |guard: &&LockGuard| after.get(guard.lease().key().as_str()).is_none();
        counts.push(Count { held: guards.len(), lost: guards.iter().filter(is_lost).count() });
        for guard in guards {
            // An error is one of a lost lock.
            drop(guard.release().await);
        }
    }
    [counts[0], counts[1]]
}

/// How many locks are held at each stage.
const FEW: usize = 20;

/// For it waits what no replica confirms.
const DEADLINE: Duration = Duration::from_secs(5);

fn count(admin: &Admin, name: &str) -> usize {
    admin.keys(&format!("disLock:{name}:*")).len()
}

/// A task that acquires locks, and keeps them, until one is unavailable or it is to end.
struct Load {
    name: &'static str,
    is_over: Arc<AtomicBool>,
    task: JoinHandle<Vec<LockGuard>>,
}

impl Load {
    fn start(name: &'static str, locker: Locker) -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let ends = Arc::clone(&is_over);
        let task = tokio::spawn(async move {
            let mut guards = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                let number = guards.len();
                match locker.lock(format!("{name}:{number}")).acquire().await {
                    Ok(guard) => guards.push(guard),
                    Err(error) => {
                        assert!(error.is_unavailable(), "{error}");
                        break;
                    }
                }
            }
            guards
        });
        Self { name, is_over, task }
    }

    async fn end(self) -> Vec<LockGuard> {
        self.is_over.store(true, Ordering::Relaxed);
        self.task.await.unwrap()
    }
}
