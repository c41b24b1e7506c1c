//! One process of `tests/chaos`, which locks, holds and releases as its seed says.
//!
//! `chaos_worker multi|current|sync URL RESOURCE JOURNAL SEED` reads orders: at `work` its callers begin, at `rest` they
//! end, and it prints `TASKS KIBIBYTES`. `chaos_worker program RESOURCE JOURNAL SEED` is what `lockable run` runs.
//! `JOURNAL` is the file that gets the lines of `chaos/history.rs`.

use std::env;
use std::fs;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lockable_runtime::Locker;
use lockable_tests::Dice;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

mod by_hand;
mod calls;
mod journal;
#[path = "../keys.rs"]
mod keys;
mod losses;
#[path = "../owner.rs"]
mod owner;
mod program;
mod resource;
mod stay;
mod sync_calls;

use calls::Caller;
use journal::Journal;
use resource::Resource;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["program", resource, journal, seed] => {
            program::run(&Resource::new(resource), &Journal::open(journal), dice(seed));
        }
        [kind, url, resource, journal, seed] => {
            let (resource, journal) = (Resource::new(resource), Journal::open(journal));
            obey(kind, &Caller::new(locker(url), resource, journal), dice(seed));
        }
        _ => panic!("{arguments:?}"),
    }
}

fn dice(seed: &str) -> Dice {
    Dice::new(seed.parse().unwrap())
}

/// Its server may be gone at the moment.
fn locker(url: &str) -> Locker {
    Locker::builder().url(url).connect_lazy().unwrap()
}

fn obey(kind: &str, caller: &Caller, mut dice: Dice) {
    let runtime = runtime(kind);
    let mut order = String::new();
    let mut at_work = None;
    while io::stdin().read_line(&mut order).unwrap() > 0 {
        match order.trim() {
            "work" => at_work = Some(AtWork::begin(kind, &runtime, caller, &mut dice)),
            "rest" => {
                at_work.take().into_iter().for_each(|it: AtWork| it.end(&runtime));
                // Releases and late writes are over then.
                settle();
                println!("{} {}", runtime.metrics().num_alive_tasks() + threads(kind), kibibytes());
            }
            other => panic!("{other}"),
        }
        order.clear();
    }
}

/// It runs on a thread of its own, because this one reads orders.
fn runtime(kind: &str) -> Arc<Runtime> {
    let mut builder = Builder::new_multi_thread();
    if kind == "current" {
        builder = Builder::new_current_thread();
    }
    let runtime = Arc::new(builder.worker_threads(2).enable_all().build().unwrap());
    let driven = Arc::clone(&runtime);
    thread::spawn(move || driven.block_on(pending::<()>()));
    runtime
}

/// Its callers, until it rests.
struct AtWork {
    caller: Caller,
    threads: Vec<thread::JoinHandle<()>>,
    tasks: JoinSet<()>,
}

impl AtWork {
    fn begin(kind: &str, runtime: &Runtime, caller: &Caller, dice: &mut Dice) -> Self {
        let caller = caller.at_work();
        let dice = (0..CALLERS).map(|_| Dice::new(dice.below(u64::MAX)));
        let (mut threads, mut tasks) = (Vec::new(), JoinSet::new());
        for dice in dice {
            let caller = caller.clone();
            if kind == "sync" {
                threads.push(thread::spawn(move || sync_calls::work(&caller, dice)));
            } else {
                tasks.spawn_on(async move { caller.work(dice).await }, runtime.handle());
            }
        }
        Self { caller, threads, tasks }
    }

    fn end(self, runtime: &Runtime) {
        self.caller.rest();
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        runtime.block_on(self.tasks.join_all());
    }
}

#[expect(clippy::disallowed_methods, reason = "nothing announces the end of the last late write")]
fn settle() {
    thread::sleep(Duration::from_millis(2_200));
}

/// Runtimes have a varying number of them.
fn threads(kind: &str) -> usize {
    if kind == "sync" { fs::read_dir("/proc/self/task").map_or(0, Iterator::count) } else { 0 }
}

fn kibibytes() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let resident = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    resident.map_or(0, |pages: u64| pages * 4)
}

/// More than there are keys, so that a process passes locks on within itself.
const CALLERS: usize = 16;
