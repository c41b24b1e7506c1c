//! A simulation of the client: whole processes, in one thread and paused time, the same for the same seed.
//!
//! In each seed, three processes call for the same locks. All of a call is real, from `core/acquire` down to the
//! contract of a backend, and so are the stores in memory. Simulated is what lies between:
//!
//! 1. Two servers ([`server`]). The number of a seed says how they are used ([`slot_owners`]) and which rules it has to
//!    keep: one server; a replica that takes over without the last writes; slots that move key by key.
//! 2. A [`client`] in each process in place of a backend. It sends the verbs over two [`connection`]s to a server, one
//!    for calls and one for the background, is woken over a [`subscription`], and follows redirects, a new primary, and
//!    a slot that moves ([`in_parts`]), as on Redis.
//! 3. The [`mix`] of the seed says what may fail: messages, connections, processes, runtimes, servers. It also says
//!    what operators do, and which calls are dropped.
//! 4. A [`worker`] makes one call after the other, each with other options, in each way that a lock can be held. Some
//!    are [`campaign`]s. Some leave their lock to one of the [`tickets`], which any worker may redeem, again and late.
//! 5. [`rules`] are checked at each poll of a body and at each grant of a server. At the end of a [`trial`] it is calm:
//!    every call has to end then, and no lock, queue entry or task may be left.
//!
//! | rule | not asserted |
//! |---|---|
//! | at most one body is polled under a lock, which the server has for it | after a server has lost the lock: by a flush, a deletion, an operator, or a failover |
//! | fencing tokens rise from grant to grant, and are used once | for grants of a primary that was left |
//! | fencing tokens rise from body to body | after such a loss, where a resource rejects them |
//! | no body begins with a grant of a server that its process has left | – |
//! | no body is polled, and no turn passed on, after an operator's message | – |
//! | a body whose lock is deleted stops when its process is notified | where processes or connections fail |
//! | a renewed lease is not lost; refusals and moves of slots lose none | where something else fails |
//! | one leader at most shows that it leads, and is elected again after a second at the earliest | after such a loss |
//! | one worker at most redeems a ticket, with its fencing token; no other call is granted the lock before | after such a loss of the ticket, or of its redemption; for redemptions at a primary that was left |
//! | a ticket has its lock for as long as it is valid, and no longer | the first half: as above, and where a process may ask a primary that was left |
//! | calls of a process are served in order, and no lock is taken for long without a call | where something fails, or slots move |
//!
//! Randomness is that of the seed, on this thread (`core/process/seeded.rs`); campaigns and tickets have dice of their
//! own. Every fiftieth seed runs twice, and has to show the same events.
//!
//! `cargo xtask simulate` runs many seeds, or shows one. Those that have shown something are in `seeds.txt`, and run each
//! time.

use std::env;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use self::history::Record;
use self::summary::Summary;
use self::trial::Outcome;

mod call;
mod campaign;
mod client;
mod connection;
pub(crate) mod dice;
mod faults;
mod held;
mod history;
mod in_parts;
mod keys;
mod life;
mod mix;
mod news;
mod nodes;
mod order;
mod panics;
mod process;
mod rules;
mod server;
mod slot_owners;
mod subscription;
mod summary;
mod ticket_rules;
mod tickets;
mod trial;
mod user;
mod worker;
mod world;

/// A seed, and what it has shown.
const KNOWN_SEEDS: &str = include_str!("seeds.txt");

/// Every seed that is a multiple of this runs twice.
const REPEATED: u64 = 50;

#[test]
fn every_seed_keeps_the_rules() {
    let plan = Plan::of_environment();
    let summary = plan.run();
    println!("{summary}");
    for (seed, violations) in &summary.failed {
        println!("\nseed {seed}: {}\n{}", violations.join("\n  "), plan.command(*seed));
    }
    assert!(summary.failed.is_empty(), "{} seeds broke a rule", summary.failed.len());
    summary.assert_enough();
}

/// Which seeds run, and for how long each.
struct Plan {
    from: u64,
    seeds: u64,
    millis: u64,
}

impl Plan {
    /// What `cargo xtask simulate` wants, or a plain `cargo test`.
    fn of_environment() -> Self {
        let number = |name: &str, default| {
            let value = env::var(format!("LOCKABLE_SIMULATION_{name}"));
            value.map_or(default, |value| value.parse().unwrap())
        };
        Self {
            from: number("FROM", 1),
            seeds: number("SEEDS", 180),
            millis: number("MILLIS", 10_000),
        }
    }

    /// Runs all seeds, on each core of the machine.
    fn run(&self) -> Summary {
        let (seeds, next) = (self.all(), AtomicUsize::new(0));
        let summary = Mutex::new(Summary::new(self.millis));
        let work = || {
            while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                let outcome = self.run_one(*seed);
                summary.lock().unwrap().add(*seed, outcome);
            }
        };
        let cores = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for _ in 0..cores.min(seeds.len()) {
                scope.spawn(work);
            }
        });
        summary.into_inner().unwrap()
    }

    fn all(&self) -> Vec<u64> {
        let range = self.from..self.from + self.seeds;
        if self.is_single() {
            return range.collect();
        }
        let known = KNOWN_SEEDS.lines().filter_map(|line| line.split(' ').next()?.parse().ok());
        known.filter(|seed| !range.contains(seed)).chain(range.clone()).collect()
    }

    fn is_single(&self) -> bool {
        self.seeds == 1
    }

    fn run_one(&self, seed: u64) -> Outcome {
        let run = |record| trial::run(seed, Duration::from_millis(self.millis), record);
        if self.is_single() {
            let outcome = run(Record::Trace);
            outcome.events.iter().for_each(|event| println!("{event}"));
            return outcome;
        }
        if !seed.is_multiple_of(REPEATED) {
            return run(Record::Counts);
        }
        let (first, mut second) = (run(Record::Hash), run(Record::Hash));
        if first.hash != second.hash {
            second.violations.push("the second run was another one".to_owned());
        }
        second
    }

    /// What runs one seed alone.
    fn command(&self, seed: u64) -> String {
        format!("  cargo xtask simulate --seeds 1 --from {seed} --millis {}", self.millis)
    }
}
