//! A process that takes one step after the other under a lock: `faults/pauses.rs` stops it.
//!
//! `worker step URL KEY MILLISECONDS` acquires the lock for so long whenever it reads a line. It
//! prints `held UNTIL` before its first step, the lease's end in nanoseconds since boot, and
//! `STEPS LATE FORBIDDEN LATEST` when the lock was lost: how many steps began, how many of them after
//! the end, how many of those in a poll of the call that began after the end itself, and by how many
//! nanoseconds they were late at most.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use lockable_runtime::{Lease, LockError, Locker, distributed_lock};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Builder;

pub(crate) fn main(arguments: &[String]) {
    let [url, key, millis] = arguments else { panic!("{arguments:?}") };
    let expire = Duration::from_millis(millis.parse().unwrap());
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let locker = Locker::builder().url(url).connect_deadline(Duration::from_secs(10));
    let locker = runtime.block_on(locker.command_deadline(Duration::from_secs(10)).connect());
    let locker = locker.unwrap();
    while io::stdin().read_line(&mut String::new()).unwrap() > 0 {
        let mut steps = Steps::default();
        let polled = Cell::default();
        let error = runtime.block_on(async {
            let mut call = pin!(work(&locker, key, expire, &polled, &mut steps));
            let noted = poll_fn(|context| {
                polled.set(boot_time());
                call.as_mut().poll(context)
            });
            noted.await.unwrap_err()
        });
        // A lock that was granted too late to be held has taken no steps.
        assert!(error.is_lost() || error.is_unavailable() && steps.count == 0, "{error}");
        let Steps { count, late, forbidden, latest } = steps;
        println!("{count} {late} {forbidden} {}", latest.as_nanos());
    }
}

#[derive(Default)]
struct Steps {
    count: u64,
    late: u64,
    forbidden: u64,
    latest: Duration,
}

#[distributed_lock(key = "steps:{key}", expire = expire, guard = lock, locker = locker.clone())]
async fn work(
    locker: &Locker,
    key: &str,
    expire: Duration,
    polled: &Cell<Duration>,
    steps: &mut Steps,
) -> Result<(), LockError> {
    let until = end_of(&lock);
    println!("held {}", until.as_nanos());
    tokio::task::yield_now().await;
    let mut timer = pin!(tick());
    // Each poll is a step, because nothing can stop a body within a poll.
    poll_fn(|context| {
        steps.take(polled.get(), until);
        while timer.as_mut().poll(context).is_ready() {
            timer.set(tick());
        }
        Poll::Pending
    })
    .await
}

impl Steps {
    /// A step that writes down when it began, and has something to do.
    fn take(&mut self, polled: Duration, until: Duration) {
        let begun = boot_time();
        self.count += 1;
        if begun >= until {
            self.late += 1;
            self.forbidden += u64::from(polled >= until);
            self.latest = self.latest.max(begun.saturating_sub(until));
        }
        while boot_time() < begun + WORK {}
    }
}

/// The end of the lease, from looks at the clock between which the process was not stopped.
fn end_of(lock: &Lease) -> Duration {
    loop {
        let before = boot_time();
        let rest = lock.remaining();
        let after = boot_time();
        if after.saturating_sub(before) < Duration::from_micros(50) {
            return after + rest;
        }
    }
}

fn boot_time() -> Duration {
    clock_gettime(ClockId::Boottime).try_into().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a step that waits is the subject")]
fn tick() -> tokio::time::Sleep {
    tokio::time::sleep(Duration::from_millis(2))
}

/// What a step takes, long beside the look at the clock before it.
const WORK: Duration = Duration::from_micros(200);
