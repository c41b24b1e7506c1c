//! Acquire and release, uncontended: this crate beside the same commands through the client alone,
//! and beside a bare `SET NX PX` with a compare-and-delete.
//!
//! `cargo bench --bench pairs`

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockable_benches::{AwakeCores, Server, median};
use lockable_runtime::Locker;
use redis::aio::MultiplexedConnection;
use tokio::runtime::{Builder, Runtime};

const TURNS: usize = 150;
/// Short, so that the contenders of a turn find the machine in the same mood.
const ROUND: Duration = Duration::from_millis(30);
/// What this crate runs to release.
const RELEASE: &str = concat!(
    include_str!("../lockable-runtime/scripts/free.lua"),
    include_str!("../lockable-runtime/scripts/hand_off.lua"),
    include_str!("../lockable-runtime/scripts/release.lua")
);
/// What a lock without a queue needs.
const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
const OWNER: &str = "0123456789abcdef.1234567";

/// Who acquires and releases.
#[derive(Clone)]
enum Contender {
    Lockable(Locker),
    /// The same commands, in one pipeline and one script.
    Same(MultiplexedConnection, Arc<str>),
    /// `SET key token NX PX`, then the same script.
    Bare(MultiplexedConnection, Arc<str>),
}

/// The result of one round of one contender.
struct Round {
    pairs_per_second: f64,
    /// Median, in microseconds.
    acquire: f64,
}

fn main() {
    let server = Server::start();
    let _awake = AwakeCores::start();
    for (name, runtime) in runtimes() {
        let contenders = runtime.block_on(contenders(&server.url()));
        for tasks in [1, 64] {
            let mut rounds: [Vec<Round>; 3] = Default::default();
            for turn in 0..TURNS {
                for place in 0..3 {
                    let which = (turn + place) % 3;
                    rounds[which].push(runtime.block_on(round(&contenders[which], tasks)));
                }
            }
            println!("\n{tasks} task(s), {name} runtime, {TURNS} turns");
            report(&rounds);
        }
    }
    println!(
        "\ngoals: rate over same at least 0.95 at 1 task and 0.9 at 64, acquire over same at most"
    );
    println!("1.1 at 1 task, rate over bare at least 0.83 at 64 tasks");
}

fn runtimes() -> [(&'static str, Runtime); 2] {
    let one = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let many = Builder::new_multi_thread().enable_all().build().expect("a runtime");
    [("current-thread", one), ("multi-thread", many)]
}

async fn contenders(url: &str) -> [Contender; 3] {
    let mut same = connection(url).await;
    let mut bare = connection(url).await;
    let release = load(&mut same, RELEASE).await;
    let compare_and_delete = load(&mut bare, COMPARE_AND_DELETE).await;
    let locker = Locker::connect(url).await.expect("a locker");
    [
        Contender::Lockable(locker),
        Contender::Same(same, release),
        Contender::Bare(bare, compare_and_delete),
    ]
}

async fn load(connection: &mut MultiplexedConnection, script: &str) -> Arc<str> {
    let name = redis::cmd("SCRIPT").arg("LOAD").arg(script).query_async::<String>(connection).await;
    name.expect("the script loads").into()
}

/// The client's defaults, but without Nagle's algorithm, which would wait for more to send.
async fn connection(url: &str) -> MultiplexedConnection {
    let client = redis::Client::open(url).expect("a URL");
    let tcp = redis::io::tcp::TcpSettings::default().set_nodelay(true);
    let info = client.get_connection_info().clone().set_tcp_settings(tcp);
    let client = redis::Client::open(info).expect("a client");
    client.get_multiplexed_async_connection().await.expect("a connection")
}

async fn round(contender: &Contender, tasks: usize) -> Round {
    let started = Instant::now();
    let spawn = |task| tokio::spawn(pairs(contender.clone(), format!("task:{task}"), started));
    let handles: Vec<_> = (0..tasks).map(spawn).collect();
    let mut acquires = Vec::new();
    for handle in handles {
        acquires.extend(handle.await.expect("a task"));
    }
    let count = u32::try_from(acquires.len()).expect("few enough pairs");
    let pairs_per_second = f64::from(count) / started.elapsed().as_secs_f64();
    Round { pairs_per_second, acquire: median(acquires) }
}

/// Pairs on a key of this task's own, one at least; how many microseconds each acquisition took.
async fn pairs(mut contender: Contender, key: String, started: Instant) -> Vec<f64> {
    let name = format!("bench:{key}");
    let (fence, queue) = (companion("fence", &name), companion("queue", &name));
    let mut acquires = Vec::with_capacity(2_000);
    if let Contender::Same(connection, _) = &mut contender {
        make_fence(connection, &fence).await;
    }
    while acquires.is_empty() || started.elapsed() < ROUND {
        let before = Instant::now();
        let mut note = || acquires.push(before.elapsed().as_secs_f64() * 1e6);
        match &mut contender {
            Contender::Lockable(locker) => {
                let guard = locker.lock(&key).acquire().await.expect("uncontended");
                note();
                guard.release().await.expect("held");
            }
            Contender::Same(connection, script) => {
                same_acquire(connection, &name, &fence).await;
                note();
                release(connection, script, &[&name, &fence, &queue]).await;
            }
            Contender::Bare(connection, script) => {
                bare_acquire(connection, &name).await;
                note();
                release(connection, script, &[&name]).await;
            }
        }
    }
    acquires
}

/// Once for a key, as the locker does.
async fn make_fence(connection: &mut MultiplexedConnection, fence: &str) {
    let mut set = redis::cmd("SET");
    set.arg(fence).arg(1_700_000_000_000_000_u64).arg("NX").arg("PX").arg(600_000);
    let _made: Option<String> = set.query_async(connection).await.expect("an answer");
}

async fn same_acquire(connection: &mut MultiplexedConnection, name: &str, fence: &str) {
    let mut pipeline = redis::pipe();
    pipeline.cmd("SET").arg(name).arg(OWNER).arg("NX").arg("GET").arg("PX").arg(10_000);
    pipeline.cmd("INCR").arg(fence);
    let replies: (Option<String>, u64) = pipeline.query_async(connection).await.expect("an answer");
    assert!(black_box(replies).0.is_none());
}

async fn bare_acquire(connection: &mut MultiplexedConnection, name: &str) {
    let mut set = redis::cmd("SET");
    set.arg(name).arg(OWNER).arg("NX").arg("PX").arg(10_000);
    let reply: Option<String> = set.query_async(connection).await.expect("an answer");
    assert!(black_box(reply).is_some());
}

fn companion(what: &str, name: &str) -> String {
    format!("lockable:{what}:{{{name}}}")
}

async fn release(connection: &mut MultiplexedConnection, script: &str, keys: &[&str]) {
    let mut call = redis::cmd("EVALSHA");
    call.arg(script).arg(keys.len()).arg(keys).arg(OWNER);
    let released: i64 = call.query_async(connection).await.expect("an answer");
    assert_eq!(released, 1);
}

fn report(rounds: &[Vec<Round>; 3]) {
    let names = ["lockable", "same commands", "bare pair"];
    for (rounds, name) in rounds.iter().zip(names) {
        let rate = median(rounds.iter().map(|round| round.pairs_per_second));
        let acquire = median(rounds.iter().map(|round| round.acquire));
        println!("  {name:<14} {rate:>8.0} pairs/s   acquire p50 {acquire:>6.1} µs");
    }
    let [ours, same, bare] = rounds;
    let ratio = |of: fn(&Round) -> f64, to: &[Round]| {
        median(ours.iter().zip(to).map(|(ours, theirs)| of(ours) / of(theirs)))
    };
    let (rate, acquire) = (|round: &Round| round.pairs_per_second, |round: &Round| round.acquire);
    println!("  rate over same    {:.3}", ratio(rate, same));
    println!("  acquire over same {:.3}", ratio(acquire, same));
    println!("  rate over bare    {:.3}", ratio(rate, bare));
}
