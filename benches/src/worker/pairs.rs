//! A round of pairs: acquisitions and releases of keys that no one else wants.

use std::fmt::{self, Write};
use std::time::{Duration, Instant};

use super::Contender;
use super::order::PairsTerms;
use crate::{cpu_time, monotonic};

/// What it took. The line that a worker writes has its fields in their order.
pub(super) struct Report {
    pairs: usize,
    wall: u64,
    cpu: u64,
    acquire: Latency,
    pair: Latency,
}

/// In nanoseconds.
struct Latency {
    p50: u32,
    p99: u32,
}

pub(super) async fn run(contender: &impl Contender, terms: &PairsTerms) -> Report {
    let (started, cpu) = (monotonic(), cpu_time());
    let tasks = (0..terms.tasks).map(|number| {
        let task = Task::new(number, terms);
        tokio::spawn(task.run(contender.clone()))
    });
    let tasks: Vec<_> = tasks.collect();
    let (mut acquires, mut pairs) = (Vec::new(), Vec::new());
    for task in tasks {
        for times in task.await.expect("a task") {
            acquires.push(times.acquire);
            pairs.push(times.pair);
        }
    }
    Report {
        wall: monotonic() - started,
        cpu: cpu_time() - cpu,
        pairs: pairs.len(),
        acquire: Latency::of(acquires),
        pair: Latency::of(pairs),
    }
}

struct Task {
    key: String,
    /// How many numbers are appended to the key in turn; `None` for no number.
    numbers: Option<usize>,
    most: usize,
    time: Duration,
}

/// In nanoseconds.
struct Times {
    acquire: u32,
    pair: u32,
}

impl Task {
    fn new(number: usize, terms: &PairsTerms) -> Self {
        let key = terms.key.replace('*', &number.to_string());
        let (key, numbers) = match key.split_once('#') {
            None => (key, None),
            Some((own, "")) => (own.to_owned(), Some(usize::MAX)),
            Some((own, numbers)) => (own.to_owned(), Some(numbers.parse().expect("a number"))),
        };
        Self { key, numbers, most: terms.most, time: terms.time }
    }

    /// One pair at least.
    async fn run(mut self, mut contender: impl Contender) -> Vec<Times> {
        let (started, own) = (Instant::now(), self.key.len());
        let mut pairs = Vec::with_capacity(1_000);
        loop {
            if let Some(numbers) = self.numbers {
                self.key.truncate(own);
                write!(self.key, "{}", pairs.len() % numbers).expect("memory");
            }
            let before = Instant::now();
            let held = contender.acquire(&self.key).await;
            let acquire = nanos(before.elapsed());
            contender.release(&self.key, held).await;
            pairs.push(Times { acquire, pair: nanos(before.elapsed()) });
            if pairs.len() >= self.most || started.elapsed() >= self.time {
                return pairs;
            }
        }
    }
}

impl Latency {
    fn of(mut times: Vec<u32>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| times[times.len() * percent / 100];
        Self { p50: at(50), p99: at(99) }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pairs, wall, cpu, acquire, pair } = self;
        write!(formatter, "{pairs} {wall} {cpu} ")?;
        write!(formatter, "{} {} {} {}", acquire.p50, acquire.p99, pair.p50, pair.p99)
    }
}

/// Up to four seconds.
fn nanos(time: Duration) -> u32 {
    u32::try_from(time.as_nanos()).unwrap_or(u32::MAX)
}
