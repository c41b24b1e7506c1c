//! How soon the body of a lock is stopped after the lock was deleted, beside a `PING` in the same run.
//!
//! `cargo bench --bench deletion` (`-- --quick`); README.md explains its output.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lockable_benches::{
    AwakeCores, Bound, CommandLine, Cores, Pinging, Server, Times, monotonic, three_digits,
};
use lockable_runtime::Locker;
use redis::Connection;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// The first renewal would come after a third of it.
const LEASE: Duration = Duration::from_secs(60);

/// How long each lock is held before it is deleted.
const HELD: Duration = Duration::from_secs(2);

/// The longest pause between two deletions.
const PAUSE_NANOS: u64 = 40_000_000;

const BETWEEN_PINGS: Duration = Duration::from_millis(5);

/// Where the server offers client tracking.
const GOAL: Bound = Bound::AtMost(10.0);

fn main() {
    let is_quick = CommandLine::read(&["--quick"], &[]).has("--quick");
    let count = if is_quick { 100 } else { 1_000 };
    let server = Cores::apart().server();
    let _awake = AwakeCores::start();
    let runtime = Runtime::new().expect("a runtime");
    let pinging = Pinging::start(&server, BETWEEN_PINGS);
    let run = Run::of(&server, &runtime, count);
    println!(
        "{count} locks with `renew`, `expire = 60`, held for {HELD:?}, deleted at random moments\n"
    );
    println!("| | p50 µs | p99 µs | most µs |\n|---|---|---|---|");
    print("`PING` meanwhile", &pinging.end());
    print("`DEL` by another client", &run.deletions);
    print("`DEL` sent to body dropped", &run.stops);
    println!("\n| `DEL` sent to body dropped | goal | |\n|---|---|---|");
    println!("| p99, ms | {GOAL} | {} |", GOAL.verdict(run.stops.at(0.99) / 1e6));
    if run.late > 0 {
        println!("\n{} bodies were not dropped within ten seconds", run.late);
    }
}

struct Run {
    deletions: Times,
    stops: Times,
    /// How many bodies ran on.
    late: usize,
}

impl Run {
    fn of(server: &Server, runtime: &Runtime, count: usize) -> Self {
        let url = server.url();
        let locker = runtime.block_on(Locker::builder().url(&url).expire(LEASE).connect());
        let locker = locker.expect("the server answers");
        let (mut admin, mut dice) = (connect(&url), monotonic());
        let (mut held, mut deletions, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
        // The locks are acquired at random moments, and each is deleted when it has been held for long enough.
        while deleted.len() < count {
            if held.len() + deleted.len() < count {
                let number = held.len() + deleted.len();
                held.push((Instant::now(), Some(Body::start(&locker, runtime, number))));
            }
            // Xorshift.
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            thread::sleep(Duration::from_nanos(dice % PAUSE_NANOS));
            let is_due =
                |(since, body): &(Instant, Option<Body>)| body.is_some() && since.elapsed() >= HELD;
            if let Some(at) = held.iter().position(is_due)
                && let Some(body) = held.remove(at).1
            {
                let sent = monotonic();
                let deleted_keys: u64 =
                    redis::cmd("DEL").arg(&body.key).query(&mut admin).expect("DEL");
                assert_eq!(deleted_keys, 1, "the lock was held");
                deletions.push(monotonic() - sent);
                deleted.push((sent, body));
            }
        }
        let ended = |(sent, body): (u64, Body)| Some(body.end(runtime)?.saturating_sub(sent));
        let stops: Vec<_> = deleted.into_iter().filter_map(ended).collect();
        Self { late: count - stops.len(), deletions: Times::of(deletions), stops: Times::of(stops) }
    }
}

/// A body that only waits.
struct Body {
    key: String,
    dropped_at: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Body {
    fn start(locker: &Locker, runtime: &Runtime, number: usize) -> Self {
        let lock = locker.lock(format!("deletion:{number}")).renew();
        let dropped_at = Arc::<AtomicU64>::default();
        let end = End(Arc::clone(&dropped_at));
        let task = runtime.spawn(async move {
            let body = async move {
                let _end = end;
                pending::<()>().await;
            };
            let error = lock.run(body).await.expect_err("the body does not end by itself");
            assert!(error.is_lost(), "{error}");
        });
        Self { key: format!("disLock:deletion:{number}"), dropped_at, task }
    }

    /// When the body was dropped, which is after its last poll; `None` when it was not.
    fn end(self, runtime: &Runtime) -> Option<u64> {
        let limit = Duration::from_secs(10);
        runtime.block_on(async { tokio::time::timeout(limit, self.task).await }).ok()?.ok()?;
        Some(self.dropped_at.load(Ordering::Acquire))
    }
}

struct End(Arc<AtomicU64>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.store(monotonic(), Ordering::Release);
    }
}

fn connect(url: &str) -> Connection {
    redis::Client::open(url).and_then(|client| client.get_connection()).expect("the server answers")
}

fn print(what: &str, times: &Times) {
    let [p50, p99, most] = [0.5, 0.99, 1.0].map(|share| three_digits(times.at(share) / 1e3));
    println!("| {what} | {p50} | {p99} | {most} |");
}
