//! Twelve workers that want two of six accounts each, again and again, and one that wants all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::Sections;
use tokio::task::JoinSet;

use super::load::{LONG, connect, elapse, now};

/// Each stands for a process.
const LOCKERS: usize = 3;
const WORKERS: usize = 12;
const ACCOUNTS: usize = 6;
const INSIDE: Duration = Duration::from_millis(2);

#[derive(Clone, Copy)]
pub(crate) enum How {
    /// All keys in one call.
    Set,
    /// By hand, in the order of the keys.
    OneByOne,
}

/// What the workers measured.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) sections: u32,
    pub(crate) took: Duration,
    /// The longest wait of those that want two.
    pub(crate) longest: Duration,
    /// The longest wait of the one that wants all.
    pub(crate) longest_of_all: Duration,
}

/// Returns when each of them has had that many sections. Until then all work on.
pub(crate) async fn work(url: &str, how: How, rounds: usize) -> Outcome {
    let sections = Arc::new(Sections::default());
    let mut lockers = Vec::new();
    for _ in 0..LOCKERS {
        lockers.push(connect(url).await);
    }
    let (mut workers, start) = (JoinSet::new(), now());
    let behind = Arc::new(AtomicUsize::new(WORKERS + 1));
    for number in 0..=WORKERS {
        let locker = lockers[number % LOCKERS].clone();
        let (sections, behind) = (Arc::clone(&sections), Arc::clone(&behind));
        workers.spawn(Worker { locker, number, how, sections, behind }.work(rounds));
    }
    let mut outcome = Outcome::default();
    for (number, count, longest) in workers.join_all().await {
        let wait =
            if number == WORKERS { &mut outcome.longest_of_all } else { &mut outcome.longest };
        *wait = longest.max(*wait);
        outcome.sections += count;
    }
    outcome.took = start.elapsed();
    sections.assert_sound();
    outcome
}

struct Worker {
    locker: Locker,
    /// The last one wants all.
    number: usize,
    how: How,
    sections: Arc<Sections>,
    /// How many workers have not had as many sections as they want.
    behind: Arc<AtomicUsize>,
}

impl Worker {
    /// Returns its number, the count of its sections, and its longest wait.
    async fn work(self, rounds: usize) -> (usize, u32, Duration) {
        let (mut count, mut longest) = (0, Duration::ZERO);
        while self.behind.load(Ordering::Relaxed) > 0 {
            let (keys, start) = (self.keys(count), now());
            let waited = match self.how {
                How::Set => self.set(keys, start).await,
                How::OneByOne => self.one_by_one(keys, start).await,
            };
            longest = longest.max(waited);
            count += 1;
            if count == rounds {
                self.behind.fetch_sub(1, Ordering::Relaxed);
            }
        }
        (self.number, u32::try_from(count).unwrap(), longest)
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
        let set = self.locker.lock_all(keys).wait(LONG).acquire().await.unwrap();
        let waited = start.elapsed();
        self.sections.enter_all(set.leases());
        elapse(INSIDE).await;
        self.sections.leave_all(set.leases());
        set.release().await.unwrap();
        waited
    }

    async fn one_by_one(&self, mut keys: Vec<String>, start: Instant) -> Duration {
        keys.sort();
        let mut guards: Vec<LockGuard> = Vec::new();
        for key in keys {
            guards.push(self.locker.lock(key).wait(LONG).renew().acquire().await.unwrap());
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
            guard.release().await.unwrap();
        }
        waited
    }
}
