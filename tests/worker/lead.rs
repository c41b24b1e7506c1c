//! A process that campaigns for the lock `k`, or runs once under it: `faults/leaders.rs` and `faults/once.rs` stop and
//! kill it.
//!
//! `worker lead URL NAME MILLISECONDS` prints `ready`, and campaigns as `NAME`, for terms of leases of that length.
//! Each millisecond it prints `TOKEN TIME` if it leads: its fencing token, and the nanoseconds since boot of a moment
//! just before. A line `resign` has it resign, and campaign again.
//!
//! `worker lead URL MILLISECONDS` prints `runs` in the body of a `once` call, which never ends.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use lockable_runtime::{Leadership, LockError, Locker, RequestId, distributed_lock, shutdown};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

pub(crate) fn main(arguments: &[String]) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let locker = Locker::builder().url(&arguments[0]);
    let locker = locker.connect_deadline(PATIENCE).command_deadline(PATIENCE);
    let locker = runtime.block_on(locker.connect()).unwrap();
    match &arguments[1..] {
        [millis] => drop(runtime.block_on(run(&locker, expire(millis)))),
        [name, millis] => campaign(&runtime, &locker, name, expire(millis)),
        _ => panic!("{arguments:?}"),
    }
}

#[distributed_lock(key = "k", expire = expire, renew, once = "1h", locker = locker)]
async fn run(locker: &Locker, expire: Duration) -> Result<(), LockError> {
    println!("runs");
    pending().await
}

/// Until its input ends.
fn campaign(runtime: &Runtime, locker: &Locker, name: &str, expire: Duration) {
    println!("ready");
    loop {
        let (probe, leading) = lead(runtime, locker, name, expire);
        let line = line();
        leading.abort();
        assert!(runtime.block_on(leading).unwrap_err().is_cancelled());
        runtime.block_on(shutdown(PATIENCE)).unwrap();
        assert!(!probe.is_leader());
        if line.is_none() {
            return;
        }
    }
}

fn lead(
    runtime: &Runtime,
    locker: &Locker,
    name: &str,
    expire: Duration,
) -> (Leadership, JoinHandle<Result<(), LockError>>) {
    let token = Arc::new(AtomicU64::new(0));
    let current = Arc::clone(&token);
    let request = RequestId::new(name).sync_scope(|| locker.lock("k").expire(expire));
    let leading = request.lead(move |lease| {
        current.store(lease.fencing_token().into(), Ordering::SeqCst);
        let term = Term(Arc::clone(&current));
        async move {
            let _term = term;
            pending::<()>().await;
        }
    });
    let probe = leading.watch();
    let watched = probe.clone();
    thread::spawn(move || believe(&watched, &token));
    (probe, runtime.spawn(leading))
}

/// A body that leads. Between two terms there is no token.
struct Term(Arc<AtomicU64>);

impl Drop for Term {
    fn drop(&mut self) {
        self.0.store(0, Ordering::SeqCst);
    }
}

/// A token of the same process that is newer by now is never taken for the older one: it is read first.
#[expect(clippy::disallowed_methods, reason = "the pause is between two looks")]
fn believe(probe: &Leadership, token: &AtomicU64) {
    loop {
        let (held, time) = (token.load(Ordering::SeqCst), boot_nanos());
        if held != 0 && probe.is_leader() && token.load(Ordering::SeqCst) == held {
            println!("{held} {time}");
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn expire(millis: &str) -> Duration {
    Duration::from_millis(millis.parse().unwrap())
}

fn line() -> Option<String> {
    let mut line = String::new();
    let length = io::stdin().read_line(&mut line).unwrap();
    (length > 0).then(|| line.trim().to_owned())
}

fn boot_nanos() -> u128 {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.try_into().unwrap()).as_nanos()
}

/// No test reaches it.
const PATIENCE: Duration = Duration::from_secs(300);
