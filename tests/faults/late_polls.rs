//! No poll of a body begins after a clock reading past its deadline.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use lockable_runtime::{Lease, LockError, Locker, distributed_lock};
use lockable_tests::Server;

use crate::runtimes::{block_on, one_thread, two_threads};
use crate::support::{boot_time, elapse, usable};
use crate::waiting::support::{ample, random};

/// Goal: bodies that are polled at any time, for any reason, are not polled too late.
/// Method: each poll reads the clock first. Bodies wake themselves without a pause, are woken by
/// other threads at random, wait for timers, and block their thread past their deadline, several at
/// once on one runtime. Between the look at the clock that counts and the body's own lies almost
/// nothing; when the thread is preempted just there the poll is late, which may happen to a few, and to more on
/// a busy machine. Without that look every lease would have one.
#[test]
fn no_poll_begins_after_the_deadline() {
    let server = Server::start();
    let locker = ample(&server.url()).connect_lazy().unwrap();
    let kinds: [Kind; 4] = [self_waking, woken_by_others, waiting_for_timers, blocking];
    let records: [Record; 4] = std::array::from_fn(|_| Record::default());
    thread::scope(|scope| {
        for runtime in [one_thread(), two_threads()] {
            let (locker, records) = (&locker, &records);
            scope.spawn(move || runtime.block_on(side_by_side(locker, &kinds, records)));
        }
        scope.spawn(|| without_a_runtime(&locker, &kinds, &records));
    });
    for (record, name) in records.iter().zip(["self-waking", "woken", "timers", "blocking"]) {
        println!("{name}: {record:?}");
        let [leases, late] = [&record.leases, &record.late].map(|n| n.load(Ordering::SeqCst));
        assert!(late < leases / 2, "{name}: {record:?}");
    }
}

/// How many leases of each kind begin.
const LEASES: u64 = 80;

fn is_enough(records: &[Record; 4]) -> bool {
    records.iter().all(|record| record.leases.load(Ordering::SeqCst) >= LEASES)
}

/// All kinds at once, and another lease each time.
async fn side_by_side(locker: &Locker, kinds: &[Kind; 4], records: &[Record; 4]) {
    while !is_enough(records) {
        let call = |n: usize| one(locker, kinds[n], &records[n]);
        tokio::join!(call(0), call(1), call(2), call(3));
    }
}

/// One kind after another, but for the timers, which need a runtime.
fn without_a_runtime(locker: &Locker, kinds: &[Kind; 4], records: &[Record; 4]) {
    while !is_enough(records) {
        for n in [0, 1, 3] {
            block_on(one(locker, kinds[n], &records[n]));
        }
    }
}

/// One call, which cannot succeed: its body has no end.
async fn one(locker: &Locker, kind: Kind, record: &Record) {
    let name = random(u64::MAX).to_string();
    let expire = Duration::from_millis(15 + random(35));
    let error = call(locker, &name, expire, boot_time(), kind, record).await.unwrap_err();
    // The answer is too late when another body has blocked the thread meanwhile.
    assert!(error.is_lost() && !error.is_body_finished() || error.is_unavailable(), "{error}");
}

#[distributed_lock(key = "polls:{name}", expire = expire, guard = lock, locker = locker.clone())]
async fn call(
    locker: &Locker,
    name: &str,
    expire: Duration,
    asked: Duration,
    kind: Kind,
    record: &Record,
) -> Result<(), LockError> {
    let first = boot_time();
    let until = deadline(&lock);
    // What the lease says of itself is possible.
    assert!(until <= first + usable(expire) + CLOSE, "{:?}", until.saturating_sub(first));
    assert!(until + CLOSE >= asked + usable(expire), "{:?}", until.saturating_sub(asked));
    record.leases.fetch_add(1, Ordering::SeqCst);
    let mut body = kind(expire);
    poll_fn(|context| {
        record.begin(boot_time(), until);
        body.as_mut().poll(context)
    })
    .await;
    Ok(())
}

/// The moment at which the lease ends, or a little later, from looks at the clock that are close to
/// each other.
fn deadline(lock: &Lease) -> Duration {
    loop {
        let before = boot_time();
        let rest = lock.remaining();
        let after = boot_time();
        if after.saturating_sub(before) < CLOSE {
            return after + rest;
        }
    }
}

const CLOSE: Duration = Duration::from_micros(50);

type Body = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A body that never ends, for a lease of that length.
type Kind = fn(Duration) -> Body;

fn self_waking(_: Duration) -> Body {
    Box::pin(poll_fn(|context| {
        context.waker().wake_by_ref();
        Poll::Pending
    }))
}

/// Some of the wakers come before the deadline, some about then, some later.
#[expect(clippy::disallowed_methods, reason = "a waker may come at any time")]
fn woken_by_others(expire: Duration) -> Body {
    let wake_later = move |context: &Context<'_>| {
        let waker = context.waker().clone();
        let pause = part_of(expire);
        thread::spawn(move || {
            thread::sleep(pause);
            waker.wake();
        });
    };
    let mut wakers = 0;
    Box::pin(poll_fn(move |context| {
        if wakers < 16 {
            wakers += 2;
            wake_later(context);
            wake_later(context);
        }
        Poll::Pending
    }))
}

fn waiting_for_timers(expire: Duration) -> Body {
    Box::pin(async move {
        loop {
            tokio::select! {
                () = elapse(part_of(expire) / 8) => {}
                () = elapse(part_of(expire) / 4) => {}
            }
        }
    })
}

/// Blocks the thread, and what else runs there, for a while each time.
#[expect(clippy::disallowed_methods, reason = "a blocked thread is the subject")]
fn blocking(expire: Duration) -> Body {
    Box::pin(poll_fn(move |context| {
        thread::sleep(part_of(expire));
        context.waker().wake_by_ref();
        Poll::Pending
    }))
}

/// Up to one and a half of a lease.
fn part_of(expire: Duration) -> Duration {
    expire * u32::try_from(random(1_500)).unwrap() / 1_000
}

/// What the polls of one kind of body found.
#[derive(Debug, Default)]
struct Record {
    leases: AtomicU64,
    polls: AtomicU64,
    late: AtomicU64,
    /// The nanoseconds after the deadline of the latest of them.
    latest: AtomicU64,
}

impl Record {
    fn begin(&self, now: Duration, until: Duration) {
        self.polls.fetch_add(1, Ordering::SeqCst);
        if now >= until {
            self.late.fetch_add(1, Ordering::SeqCst);
            let nanos = u64::try_from(now.saturating_sub(until).as_nanos()).unwrap();
            self.latest.fetch_max(nanos, Ordering::SeqCst);
        }
    }
}
