//! A failover as it happens: the scenario of `tests/crowds/sentinel.rs` with a lock that is renewed and a busy one.

use std::fmt::Write;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Sentinels, Server};
use tokio::runtime::Builder;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;

pub(crate) fn record() -> String {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(lanes())
}

async fn lanes() -> String {
    let group = Arc::new(Sentinels::start());
    let locker = Locker::builder().url(group.url()).command_deadline(LIMIT).connect().await;
    let locker = locker.expect("the group answers");
    let guard = locker.lock("order:7").expire(LEASE).renew().acquire().await.expect("a free lock");
    let start = Instant::now();
    let busy = Busy::start(&locker, start);
    let (switched, announced) = channel();
    let old = spawn_blocking({
        let group = Arc::clone(&group);
        move || fail_over(&group, start, &switched)
    });
    let renewals = follow(&guard, start).await;
    let sections = busy.end().await;
    let at = old.await.expect("it does not panic");
    let promoted = announced.recv().expect("it was promoted");
    guard.release().await.expect("it is still held");
    let end = millis(END);
    let mut data = format!(
        "axis {end} 1000\nlane old primary\nspan primary 0 {at}\nmark switch {at}\n\
         note {at} killed by SIGKILL\nlane new primary\nspan replica 0 {promoted}\n\
         span primary {promoted} {end}\nmark switch {promoted}\n\
         note {promoted} promoted by the Sentinels\nlane holder, expire = 5, renew\n\
         span taken 0 {end}\nspan body 0 {end}\n"
    );
    for renewal in &renewals {
        writeln!(data, "mark renewed {renewal}").expect("memory");
    }
    let first = renewals.iter().find(|renewal| **renewal > promoted);
    if let Some(first) = first {
        writeln!(data, "note {first} renewed at the new primary: the body runs on")
            .expect("memory");
    }
    data + &lane_of(&sections, at, promoted)
}

/// When the primary was killed; sends when another one was there.
fn fail_over(group: &Sentinels, start: Instant, switched: &Sender<u64>) -> u64 {
    let before = group.primary();
    let others: Vec<&Server> = group.replicas().collect();
    std::thread::sleep(KILLED);
    let at = since(start);
    before.kill();
    let is_primary = |server: &&Server| server.admin().info("replication").contains("role:master");
    while !others.iter().any(is_primary) {
        std::thread::sleep(STEP);
    }
    switched.send(since(start)).expect("the other side waits");
    at
}

/// When the lease was renewed.
async fn follow(guard: &LockGuard, start: Instant) -> Vec<u64> {
    let (mut renewals, mut left) = (Vec::new(), guard.lease().remaining());
    while start.elapsed() < END {
        sleep(STEP).await;
        assert!(guard.lease().is_held(), "the lock was lost");
        let now = guard.lease().remaining();
        if now > left {
            renewals.push(since(start));
        }
        left = now;
    }
    renewals
}

/// Calls that hold one lock in turn.
struct Busy {
    ends: Arc<Mutex<Vec<u64>>>,
    calls: JoinSet<()>,
}

impl Busy {
    fn start(locker: &Locker, start: Instant) -> Self {
        let (ends, mut calls) = (Arc::<Mutex<Vec<u64>>>::default(), JoinSet::new());
        for _ in 0..4 {
            let (locker, ends) = (locker.clone(), Arc::clone(&ends));
            calls.spawn(async move {
                loop {
                    let request = locker.lock("busy").wait(LIMIT);
                    if request.run(sleep(2 * STEP)).await.is_ok() {
                        ends.lock().expect("no panic").push(since(start));
                    }
                }
            });
        }
        Self { ends, calls }
    }

    async fn end(mut self) -> Vec<u64> {
        self.calls.shutdown().await;
        std::mem::take(&mut *self.ends.lock().expect("no panic"))
    }
}

/// A bar as long as the lock moves, and a note on the pause after the kill.
fn lane_of(sections: &[u64], killed: u64, promoted: u64) -> String {
    let mut lane = "lane four calls, one busy lock\n".to_owned();
    let (mut from, mut last) = (0, 0);
    for end in sections {
        if end - last > PAUSE {
            writeln!(lane, "span sections {from} {last}").expect("memory");
            from = *end;
        }
        last = *end;
    }
    writeln!(lane, "span sections {from} {last}").expect("memory");
    let again = sections.iter().find(|end| **end > promoted).expect("the lock is passed on again");
    lane + &format!("note {again} passed on again {} ms after the kill\n", again - killed)
}

fn since(start: Instant) -> u64 {
    millis(start.elapsed())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).expect("seconds")
}

const LEASE: Duration = Duration::from_secs(5);
const KILLED: Duration = Duration::from_secs(3);
const END: Duration = Duration::from_secs(12);
/// A shorter one is the machine's.
const PAUSE: u64 = 300;

const STEP: Duration = Duration::from_millis(10);

/// What a loaded machine does not reach.
const LIMIT: Duration = Duration::from_secs(30);
