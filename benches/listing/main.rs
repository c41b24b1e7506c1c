//! What a listing of few locks among very many keys costs another client: its `PING` alone and meanwhile.
//!
//! `cargo bench --bench listing` (`-- --quick`); README.md explains its output.

use std::time::{Duration, Instant};

use lockable_benches::{
    AwakeCores, Bound, CommandLine, Cores, Pinging, Server, Times, median, three_digits,
};
use lockable_runtime::Locker;
use lockable_runtime::admin::Locks;
use redis::Connection;
use tokio::runtime::Runtime;

const LOCKS: usize = 2_000;

/// Of the client that pings.
const BETWEEN_PINGS: Duration = Duration::from_millis(1);

/// Slower commands are in the server's log.
const SLOW: Duration = Duration::from_millis(1);

fn main() {
    let is_quick = CommandLine::read(&["--quick"], &[]).has("--quick");
    let (keys, rounds) = if is_quick { (100_000, 2) } else { (1_000_000, 5) };
    let server = Cores::apart().server();
    let mut admin = connect(&server);
    fill(&mut admin, keys);
    let _awake = AwakeCores::start();
    let runtime = Runtime::new().expect("a runtime");
    let locker = runtime.block_on(Locker::connect(&server.url())).expect("the server answers");
    let [mut alone, mut gentle, mut fast] = [(); 3].map(|()| Case::default());
    for _ in 0..rounds {
        let begun = Instant::now();
        gentle.measure(&server, &mut admin, || list(&runtime, locker.admin().locks()));
        let as_long = begun.elapsed();
        alone.measure(&server, &mut admin, || std::thread::sleep(as_long));
        fast.measure(&server, &mut admin, || list(&runtime, locker.admin().locks().unthrottled()));
    }
    println!("{LOCKS} locks among {keys} other keys, listed {rounds} times\n");
    println!("| | s | `PING` p50 µs | p99 µs | most µs | commands over 1 ms | the slowest, µs |");
    println!("|---|---|---|---|---|---|---|");
    alone.print("alone");
    gentle.print("during `locks()`");
    fast.print("during `locks().unthrottled()`");
    println!("\n| during `locks()`, beside alone in the same round | goal | |\n|---|---|---|");
    let each = || gentle.pings.iter().zip(&alone.pings);
    let ratio = median(each().map(|(gentle, alone)| gentle.at(0.5) / alone.at(0.5)));
    let more = median(each().map(|(gentle, alone)| (gentle.at(0.99) - alone.at(0.99)) / 1e6));
    let goals =
        [("p50, times", Bound::AtMost(1.2), ratio), ("p99, ms more", Bound::AtMost(1.0), more)];
    for (what, bound, result) in goals {
        println!("| {what} | {bound} | {} |", bound.verdict(result));
    }
}

/// What other clients had to wait for.
#[derive(Default)]
struct Case {
    /// Of each round.
    pings: Vec<Times>,
    took: Duration,
    slow: usize,
    slowest: u64,
}

impl Case {
    fn measure(&mut self, server: &Server, admin: &mut Connection, act: impl FnOnce()) {
        command::<()>(admin, &["SLOWLOG", "RESET"]);
        let (pinging, begun) = (Pinging::start(server, BETWEEN_PINGS), Instant::now());
        act();
        self.took += begun.elapsed();
        self.pings.push(pinging.end());
        let slow: Vec<(u64, u64, u64)> = first_three(admin);
        self.slow += slow.len();
        self.slowest = slow.iter().map(|(_, _, micros)| *micros).fold(self.slowest, u64::max);
    }

    fn print(&self, name: &str) {
        let mut all = Times::default();
        self.pings.iter().for_each(|pings| all.add(pings.clone()));
        let at = |share| three_digits(all.at(share) / 1e3);
        let seconds = three_digits(self.took.as_secs_f64());
        let (p50, p99, most) = (at(0.5), at(0.99), at(1.0));
        println!(
            "| {name} | {seconds} | {p50} | {p99} | {most} | {} | {} |",
            self.slow, self.slowest
        );
    }
}

/// The entries of the log: their numbers, when they were made, and how many microseconds they took.
fn first_three(admin: &mut Connection) -> Vec<(u64, u64, u64)> {
    let entries: Vec<Vec<redis::Value>> = command(admin, &["SLOWLOG", "GET", "1000"]);
    let number = |entry: &[redis::Value], at: usize| {
        redis::from_redis_value::<u64>(entry[at].clone()).expect("a number")
    };
    entries.iter().map(|entry| (number(entry, 0), number(entry, 1), number(entry, 2))).collect()
}

fn list(runtime: &Runtime, mut locks: Locks) {
    let mut count = 0;
    runtime.block_on(async {
        while let Some(lock) = locks.next().await {
            lock.expect("the server answers");
            count += 1;
        }
    });
    assert_eq!(count, LOCKS);
}

fn fill(admin: &mut Connection, keys: usize) {
    let foreign = "for i = 1, ARGV[1] do redis.call('SET', 'cache:' .. i, 'x') end";
    let locks = "for i = 1, ARGV[1] do redis.call('SET', 'disLock:order:' .. i, \
                 '0123456789abcdef.1750000000000001', 'PX', 6000000) end";
    for (script, count) in [(foreign, keys), (locks, LOCKS)] {
        command::<()>(admin, &["EVAL", script, "0", &count.to_string()]);
    }
    let micros = SLOW.as_micros().to_string();
    command::<()>(admin, &["CONFIG", "SET", "slowlog-log-slower-than", &micros]);
    command::<()>(admin, &["CONFIG", "SET", "slowlog-max-len", "1000"]);
}

fn connect(server: &Server) -> Connection {
    let client = redis::Client::open(server.url()).expect("a URL");
    client.get_connection().expect("the server answers")
}

fn command<T: redis::FromRedisValue>(connection: &mut Connection, words: &[&str]) -> T {
    let (name, arguments) = words.split_first().expect("a command has a name");
    redis::cmd(name).arg(arguments).query(connection).expect("an answer")
}
