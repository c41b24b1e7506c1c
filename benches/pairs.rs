//! Acquire and release, uncontended: this crate beside the same commands through the client alone,
//! and beside a bare `SET NX PX` with its release.
//!
//! `cargo bench --bench pairs`

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockable_benches::{Server, median};
use lockable_runtime::Locker;
use redis::aio::MultiplexedConnection;
use tokio::runtime::Runtime;

const TURNS: usize = 20;
const ROUND: Duration = Duration::from_millis(150);
const RELEASE: &str = include_str!("../lockable-runtime/scripts/release.lua");

/// One contender: a pair on the key of a task.
#[derive(Clone)]
enum Contender {
    Ours(Locker),
    /// The same commands, in one pipeline and one script.
    Same(MultiplexedConnection, Arc<str>),
    /// `SET key token NX PX`, then the same script.
    Bare(MultiplexedConnection, Arc<str>),
}

/// What one round came to.
struct Round {
    pairs_per_second: f64,
    acquire_p50: f64,
}

fn main() {
    let server = Server::start();
    let runtime = if std::env::var("CT").is_ok() {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    } else {
        Runtime::new().expect("a runtime")
    };
    let contenders = runtime.block_on(contenders(&server.url()));
    for (tasks, goals) in [(64, [0.9, 0.83])] {
        let mut rounds: [Vec<Round>; 3] = Default::default();
        for turn in 0..TURNS {
            for place in 0..3 {
                let which = (turn + place) % 3;
                let round = runtime.block_on(run(&contenders[which], tasks));
                rounds[which].push(round);
            }
        }
        report(tasks, &rounds, goals);
    }
}

async fn contenders(url: &str) -> [Contender; 3] {
    let client = redis::Client::open(url).expect("a URL");
    let config = redis::AsyncConnectionConfig::new();
    let tcp = redis::io::tcp::TcpSettings::default().set_nodelay(true);
    let info = client.get_connection_info().clone().set_tcp_settings(tcp);
    let client = redis::Client::open(info).expect("a client");
    let connect = || async {
        client.get_multiplexed_async_connection_with_config(&config).await.expect("a connection")
    };
    let mut same = connect().await;
    let load = redis::cmd("SCRIPT").arg("LOAD").arg(RELEASE).query_async::<String>(&mut same).await;
    let sha: Arc<str> = load.expect("the script loads").into();
    let bare = connect().await;
    let locker = Locker::connect(url).await.expect("a locker");
    [Contender::Ours(locker), Contender::Same(same, Arc::clone(&sha)), Contender::Bare(bare, sha)]
}

async fn run(contender: &Contender, tasks: usize) -> Round {
    let started = Instant::now();
    let handles: Vec<_> = (0..tasks)
        .map(|task| tokio::spawn(pairs(contender.clone(), format!("task:{task}"), started)))
        .collect();
    let mut acquires = Vec::new();
    for handle in handles {
        acquires.extend(handle.await.expect("a task"));
    }
    let pairs_per_second = acquires.len() as f64 / started.elapsed().as_secs_f64();
    Round { pairs_per_second, acquire_p50: median(acquires) }
}

/// How many microseconds each acquisition took.
async fn pairs(mut contender: Contender, key: String, started: Instant) -> Vec<f64> {
    let (name, floor) = (format!("bench:{key}"), format!("lockable:floor:{{bench:{key}}}"));
    let mut acquires = Vec::with_capacity(10_000);
    while started.elapsed() < ROUND {
        let before = Instant::now();
        match &mut contender {
            Contender::Ours(locker) => {
                let guard = locker.lock(&key).acquire().await.expect("uncontended");
                acquires.push(before.elapsed().as_secs_f64() * 1e6);
                guard.release().await.expect("held");
            }
            Contender::Same(connection, sha) => {
                same_acquire(connection, &name, &floor).await;
                acquires.push(before.elapsed().as_secs_f64() * 1e6);
                release(connection, sha, &name).await;
            }
            Contender::Bare(connection, sha) => {
                bare_acquire(connection, &name).await;
                acquires.push(before.elapsed().as_secs_f64() * 1e6);
                release(connection, sha, &name).await;
            }
        }
    }
    acquires
}

const OWNER: &str = "0123456789abcdef.1234567";

async fn same_acquire(connection: &mut MultiplexedConnection, name: &str, floor: &str) {
    let mut pipeline = redis::pipe();
    pipeline.cmd("SET").arg(name).arg(OWNER).arg("NX").arg("GET").arg("PX").arg(10_000);
    pipeline.cmd("SET").arg(floor).arg(1_700_000_000_000_000_u64).arg("NX").arg("PX").arg(600_000);
    pipeline.cmd("INCR").arg(floor);
    let replies: (Option<String>, Option<String>, u64) =
        pipeline.query_async(connection).await.expect("granted");
    assert!(black_box(replies).0.is_none());
}

async fn bare_acquire(connection: &mut MultiplexedConnection, name: &str) {
    let mut set = redis::cmd("SET");
    set.arg(name).arg(OWNER).arg("NX").arg("PX").arg(10_000);
    let reply: Option<String> = set.query_async(connection).await.expect("granted");
    assert!(black_box(reply).is_some());
}

async fn release(connection: &mut MultiplexedConnection, sha: &str, name: &str) {
    let mut call = redis::cmd("EVALSHA");
    call.arg(sha).arg(1).arg(name).arg(OWNER);
    let released: i64 = call.query_async(connection).await.expect("released");
    assert_eq!(released, 1);
}

fn report(tasks: usize, rounds: &[Vec<Round>; 3], [goal_same, goal_bare]: [f64; 2]) {
    let ratio = |of: fn(&Round) -> f64, to: usize| {
        median((0..TURNS).map(|turn| of(&rounds[0][turn]) / of(&rounds[to][turn])).collect())
    };
    let rate: fn(&Round) -> f64 = |round| round.pairs_per_second;
    let p50: fn(&Round) -> f64 = |round| round.acquire_p50;
    println!("{tasks} task(s), {TURNS} turns:");
    for (which, name) in ["lockable", "same commands", "bare pair"].into_iter().enumerate() {
        let rate = median(rounds[which].iter().map(rate).collect());
        let p50 = median(rounds[which].iter().map(p50).collect());
        println!("  {name:<14} {rate:>9.0} pairs/s   p50 of acquire {p50:>7.1} µs");
    }
    println!("  rate over same commands  {:.3}  (goal {goal_same})", ratio(rate, 1));
    println!("  p50 over same commands   {:.3}", ratio(p50, 1));
    println!("  rate over bare pair      {:.3}  (goal {goal_bare})", ratio(rate, 2));
}
