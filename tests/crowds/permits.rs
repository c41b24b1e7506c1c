//! Permits under load whose holders take unlike times, beside a lock for each number.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockable_runtime::{LockRequest, Locker};
use lockable_tests::sections::is_clean;
use lockable_tests::{Pace, Sections, Server, long_form};
use tokio::task::JoinSet;

use crate::{LIMIT, alone, connect, elapse, now};

/// Each stands for a process.
const LOCKERS: usize = 4;
const CALLERS: usize = 12;
const NUMBERS: u64 = 3;

/// Goal: no caller waits behind a long body while another permit is free.
/// Method: the same bodies under permits, and under a lock for each number, of which a caller takes any. One in ten bodies
/// is 25 times as long. The longest wait of ten seconds is an accident, so those of each second are added up.
#[test]
fn callers_wait_half_as_long_for_permits_as_for_a_lock_of_each_number() {
    alone(async {
        let server = Server::start();
        let url = server.url();
        let permits = work(&url, |locker, _| locker.lock("k").permits(3)).await;
        let numbers = work(&url, |locker, draw| locker.lock(format!("k:{}", draw % NUMBERS))).await;
        println!("permits {permits:?}, a lock for each number {numbers:?}");
        // What a machine with other work says in half a second is no measurement.
        if long_form(0, 1) == 1 {
            let [permits, numbers] = [permits, numbers].map(|waits| waits.iter().sum::<Duration>());
            assert!(2 * permits <= numbers, "{permits:?} {numbers:?}");
        }
        is_clean(&server).await;
    });
}

/// The longest wait of each second.
async fn work(url: &str, request: fn(&Locker, u64) -> LockRequest) -> Vec<Duration> {
    let mut lockers = Vec::new();
    for _ in 0..LOCKERS {
        lockers.push(connect(url).await);
    }
    let sections = Arc::new(Sections::default());
    let (mut callers, start) = (JoinSet::new(), now());
    for number in 0..CALLERS {
        let (locker, sections) = (lockers[number % LOCKERS].clone(), Arc::clone(&sections));
        callers.spawn(Caller { locker, number, request, sections }.call_since(start));
    }
    let callers = callers.join_all().await;
    sections.assert_sound();
    let longest = |second| callers.iter().map(|waits| waits[second]).max().unwrap();
    (0..callers[0].len()).map(longest).collect()
}

struct Caller {
    locker: Locker,
    number: usize,
    request: fn(&Locker, u64) -> LockRequest,
    sections: Arc<Sections>,
}

impl Caller {
    async fn call_since(self, start: Instant) -> Vec<Duration> {
        let time = Duration::from_millis(u64::try_from(long_form(300, 20_000)).unwrap());
        let mut waits = vec![Duration::ZERO; usize::try_from(time.as_secs()).unwrap() + 1];
        let mut count = 0;
        while start.elapsed() < time {
            let second = usize::try_from(start.elapsed().as_secs()).unwrap();
            waits[second] = self.call(count).await.max(waits[second]);
            count += 1;
        }
        waits
    }

    async fn call(&self, count: usize) -> Duration {
        let (draw, start, pace) = (draw(self.number, count), now(), Pace::start());
        let guard = (self.request)(&self.locker, draw).wait(LIMIT).acquire().await.unwrap();
        let waited = start.elapsed();
        self.sections.enter(&guard);
        let is_long = (draw / NUMBERS).is_multiple_of(10);
        elapse(Duration::from_millis(if is_long { 50 } else { 2 })).await;
        self.sections.leave(&guard);
        pace.assert_released(&guard.release().await);
        waited
    }
}

/// As good as by chance, and the same for permits and for numbers.
fn draw(caller: usize, count: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    (caller, count).hash(&mut hasher);
    hasher.finish()
}
