//! Calls for several keys that overlap: twelve want two of six accounts, and one wants all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::sections::{is_clean, is_clean_everywhere};
use lockable_tests::{Cluster, Pace, Sections, Server, long_form};
use tokio::task::JoinSet;

use crate::{LIMIT, alone, connect, elapse, now};

/// Each stands for a process.
const LOCKERS: usize = 3;
const WORKERS: usize = 12;
const ACCOUNTS: usize = 6;
const INSIDE: Duration = Duration::from_millis(2);

#[test]
fn overlapping_sets_neither_deadlock_nor_starve() {
    alone(async {
        let server = Server::start();
        compare(&server.url()).await;
        is_clean(&server).await;
    });
}

/// The accounts are in slots of all nodes.
#[test]
fn overlapping_sets_over_the_slots_of_a_cluster() {
    alone(async {
        let cluster = Cluster::start();
        compare(&cluster.url()).await;
        is_clean_everywhere(&cluster).await;
    });
}

/// Beside the same locks, taken one by one in order by hand.
async fn compare(url: &str) {
    let (at_once, by_hand) = (work(url, How::Set).await, work(url, How::OneByOne).await);
    println!("{at_once:?}, one by one {by_hand:?}");
    assert!(at_once.fewest > 0 && at_once.of_all > 0, "{at_once:?}");
    // What a machine with other work says in two seconds is no measurement.
    if long_form(0, 1) == 1 {
        assert!(at_once.sections * 10 >= by_hand.sections * 8, "{at_once:?} {by_hand:?}");
        assert!(at_once.longest_of_all <= 3 * at_once.longest, "{at_once:?}");
    }
}

#[derive(Clone, Copy)]
enum How {
    Set,
    OneByOne,
}

#[derive(Debug, Default)]
struct Outcome {
    sections: usize,
    /// Of the worker with the fewest.
    fewest: usize,
    longest: Duration,
    /// The sections of the one that wants all, and its longest wait.
    of_all: usize,
    longest_of_all: Duration,
}

async fn work(url: &str, how: How) -> Outcome {
    let (sections, pace) = (Arc::new(Sections::default()), Pace::start());
    let end = now() + Duration::from_secs(u64::try_from(long_form(1, 10)).unwrap());
    let mut lockers = Vec::new();
    for _ in 0..LOCKERS {
        lockers.push(connect(url).await);
    }
    let mut workers = JoinSet::new();
    for number in 0..=WORKERS {
        let locker = lockers[number % LOCKERS].clone();
        let worker = Worker { locker, number, how, sections: Arc::clone(&sections), pace };
        workers.spawn(worker.work_until(end));
    }
    let (mut outcome, mut ended) = (Outcome { fewest: usize::MAX, ..Outcome::default() }, 0);
    while let Some(worker) = workers.join_next().await {
        let (number, count, longest) = worker.unwrap();
        ended += 1;
        if number == WORKERS {
            (outcome.of_all, outcome.longest_of_all) = (count, longest);
            continue;
        }
        outcome.sections += count;
        outcome.fewest = count.min(outcome.fewest);
        outcome.longest = longest.max(outcome.longest);
    }
    assert_eq!(ended, WORKERS + 1);
    sections.assert_sound();
    outcome
}

struct Worker {
    locker: Locker,
    /// The last one wants all.
    number: usize,
    how: How,
    sections: Arc<Sections>,
    pace: Pace,
}

impl Worker {
    /// Returns its number, the count of its sections, and its longest wait.
    async fn work_until(self, end: Instant) -> (usize, usize, Duration) {
        let (mut count, mut longest) = (0, Duration::ZERO);
        while now() < end {
            let (keys, start) = (self.keys(count), now());
            longest = match self.how {
                How::Set => self.set(keys, start).await,
                How::OneByOne => self.one_by_one(keys, start).await,
            }
            .max(longest);
            count += 1;
        }
        (self.number, count, longest)
    }

    /// Each pair as often as any other, in either order.
    fn keys(&self, count: usize) -> Vec<String> {
        let account = |number: usize| format!("account:{}", number % ACCOUNTS);
        if self.number == WORKERS {
            return (0..ACCOUNTS).rev().map(account).collect();
        }
        let step = self.number * 7 + count * 5;
        vec![account(step), account(step + 1 + (step / ACCOUNTS) % (ACCOUNTS - 1))]
    }

    async fn set(&self, keys: Vec<String>, start: Instant) -> Duration {
        let set = self.locker.lock_all(keys).wait(LIMIT).acquire().await.unwrap();
        let waited = start.elapsed();
        self.sections.enter_all(set.leases());
        elapse(INSIDE).await;
        self.sections.leave_all(set.leases());
        self.pace.assert_released(&set.release().await);
        waited
    }

    async fn one_by_one(&self, mut keys: Vec<String>, start: Instant) -> Duration {
        keys.sort();
        let mut guards: Vec<LockGuard> = Vec::new();
        for key in keys {
            guards.push(self.locker.lock(key).wait(LIMIT).renew().acquire().await.unwrap());
        }
        let waited = start.elapsed();
        for guard in &guards {
            self.sections.enter(guard);
        }
        elapse(INSIDE).await;
        for guard in &guards {
            self.sections.leave(guard);
        }
        for guard in guards {
            self.pace.assert_released(&guard.release().await);
        }
        waited
    }
}

/// What sets do not do: each has what the other one waits for.
#[test]
fn by_hand_in_opposite_orders_two_calls_wait_for_the_end_of_a_lease() {
    const LEASE: Duration = Duration::from_secs(1);
    alone(async {
        let server = Server::start();
        let (one, two) = (connect(&server.url()).await, connect(&server.url()).await);
        let hold = async |locker: &Locker, key: &str| {
            locker.lock(key).expire(LEASE).acquire().await.unwrap()
        };
        let (a, b) = (hold(&one, "a").await, hold(&two, "b").await);
        let start = now();
        let first = tokio::select! {
            guard = hold(&one, "b") => guard,
            guard = hold(&two, "a") => guard,
        };
        assert!(start.elapsed() >= LEASE / 2, "{:?}", start.elapsed());
        assert!(!a.lease().is_held() || !b.lease().is_held());
        drop((a, b, first));
        lockable_runtime::shutdown(LIMIT).await.unwrap();
        is_clean(&server).await;
    });
}
