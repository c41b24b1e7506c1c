//! What a grant costs that a replica confirms, beside one that counts at once.
//!
//! `cargo bench --bench replicas` (`-- --quick`); README.md explains its output.

use std::time::{Duration, Instant};

use lockable_benches::{AwakeCores, CommandLine, Cores, Server, Times, median, three_digits};
use lockable_runtime::Locker;
use redis::Connection;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// How many tasks acquire at once.
const TASKS: [usize; 3] = [1, 16, 256];

/// A machine that is busy misses no deadline.
const DEADLINE: Duration = Duration::from_secs(30);

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn main() {
    let is_quick = CommandLine::read(&["--quick"], &[]).has("--quick");
    let (grants, rounds) = if is_quick { (2_000, 3) } else { (10_000, 5) };
    let (primary, replica) = (Cores::apart().server(), Cores::apart().server());
    follow(&primary, &replica);
    let _awake = AwakeCores::start();
    let runtime = Runtime::new().expect("a runtime");
    let connect = |replicas| {
        let builder = Locker::builder().url(primary.url()).replicas(replicas);
        let builder = builder.command_deadline(DEADLINE).connect_deadline(DEADLINE);
        runtime.block_on(builder.connect()).expect("the server answers")
    };
    let lockers = [connect(0), connect(1)];
    let mut admin = connection(&primary);
    println!("{rounds} rounds of {grants} grants, each released, on a key for each task\n");
    println!(
        "| tasks | plain: grants/s | p50 µs | p99 µs | `replicas=1`: grants/s | p50 µs | p99 µs | `WAIT` a grant | grants/s over plain |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for tasks in TASKS {
        let mut cases = [Case::default(), Case::default()];
        for _ in 0..rounds {
            for (case, locker) in cases.iter_mut().zip(&lockers) {
                case.measure(&runtime, &mut admin, locker, tasks, grants / tasks);
            }
        }
        let [plain, confirmed] = &cases;
        let ratio =
            median(confirmed.rates.iter().zip(&plain.rates).map(|(one, other)| one / other));
        let waits = three_digits(confirmed.waits as f64 / confirmed.grants as f64);
        let ratio = three_digits(ratio);
        println!("| {tasks} | {} | {} | {waits} | {ratio} |", plain.columns(), confirmed.columns());
        assert_eq!(plain.waits, 0, "without `replicas` nothing waits");
    }
}

#[derive(Default)]
struct Case {
    /// Grants a second of each round.
    rates: Vec<f64>,
    times: Times,
    waits: u64,
    grants: usize,
}

impl Case {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    fn measure(
        &mut self,
        runtime: &Runtime,
        admin: &mut Connection,
        locker: &Locker,
        tasks: usize,
        each: usize,
    ) {
        command::<()>(admin, &["CONFIG", "RESETSTAT"]);
        let begun = Instant::now();
        let times = runtime.block_on(async {
            let mut running = JoinSet::new();
            for task in 0..tasks {
                running.spawn(grants(locker.clone(), task, each));
            }
            running.join_all().await.concat()
        });
        self.rates.push(times.len() as f64 / begun.elapsed().as_secs_f64());
        self.grants += times.len();
        self.waits += waits(&command::<String>(admin, &["INFO", "commandstats"]));
        self.times.add(Times::of(times));
    }

    fn columns(&self) -> String {
        let rate = median(self.rates.iter().copied());
        let [p50, p99] = [0.5, 0.99].map(|share| three_digits(self.times.at(share) / 1e3));
        format!("{} | {p50} | {p99}", three_digits(rate))
    }
}

/// How many nanoseconds each grant of a task took.
async fn grants(locker: Locker, task: usize, each: usize) -> Vec<u64> {
    let mut times = Vec::with_capacity(each);
    for _ in 0..each {
        let begun = Instant::now();
        let guard = locker.lock(format!("replicas:{task}")).acquire().await.expect("a free lock");
        times.push(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
        guard.release().await.expect("a held lock");
    }
    times
}

/// Makes one server the replica of the other, and waits until it follows.
fn follow(primary: &Server, replica: &Server) {
    let url = primary.url();
    let port = url.trim_end_matches('/').rsplit(':').next().expect("a port");
    let mut admin = connection(replica);
    command::<()>(&mut admin, &["REPLICAOF", "127.0.0.1", port]);
    let begun = Instant::now();
    while !command::<String>(&mut admin, &["INFO", "replication"]).contains("link_status:up") {
        assert!(begun.elapsed() < DEADLINE, "the replica does not follow");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn waits(statistics: &str) -> u64 {
    let line = statistics.lines().find_map(|line| line.strip_prefix("cmdstat_wait:calls="));
    line.and_then(|rest| rest.split(',').next()).map_or(0, |calls| calls.parse().expect("a number"))
}

fn connection(server: &Server) -> Connection {
    let client = redis::Client::open(server.url());
    client.and_then(|client| client.get_connection()).expect("the server answers")
}

fn command<T: redis::FromRedisValue>(connection: &mut Connection, words: &[&str]) -> T {
    let (name, arguments) = words.split_first().expect("a command has a name");
    redis::cmd(name).arg(arguments).query(connection).expect("an answer")
}
