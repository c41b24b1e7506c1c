//! Lockers whose server, or something before it, answers nonsense, and to which others publish messages.
//!
//! Goal: a panic, a call that hangs, memory that grows, a lock that no server has given, a lease that a message ends, or a
//! locker that is of no use afterwards.
//! Method: each case has a locker behind a stub node, and one that is not. Both work on a few locks. The stub node garbles
//! replies and messages, and another client publishes forged and garbage messages, all as the case's seed says. In some
//! cases nothing is garbled: there no call fails, whatever wake-ups are forged. In others, everything that is garbled can
//! be told from what a server sends: no body runs there without its lock. In the rest, that is counted only: whose replies
//! are believed that fit. Then the garbling ends, and every lock can be acquired again.
//!
//! A test binary of its own, because panics and memory are those of the whole process. CONTRIBUTING.md says how to
//! repeat a case.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

mod board;
mod calls;
mod case;
mod forger;
mod process;

use case::{Outcome, World};
use process::{Memory, Panics};

#[test]
fn no_answer_and_no_message_harms_a_locker() {
    let panics = Panics::watch();
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (total, failed) = runtime.block_on(run_all(&panics));
    println!("{total}");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    total.is_valid();
}

/// The cases of some seeds, many at the same time, because most of them wait.
async fn run_all(panics: &Panics) -> (Outcome, Vec<String>) {
    let first = number("LOCKABLE_HOSTILE_SEED").unwrap_or(1);
    let count = number("LOCKABLE_HOSTILE_CASES").unwrap_or(USUAL);
    let (world, at_once) = (Arc::new(World::start()), Arc::new(Semaphore::new(AT_ONCE)));
    let (mut cases, mut failed) = (JoinSet::new(), Vec::new());
    for seed in first..first + count {
        let (world, at_once) = (Arc::clone(&world), Arc::clone(&at_once));
        cases.spawn(async move {
            let _permit = at_once.acquire().await.unwrap();
            let case = tokio::spawn(case::run(world, seed));
            let outcome = timeout(CASE, case).await;
            (
                seed,
                outcome.map_or(Err("it hangs".to_owned()), |ended| {
                    ended.unwrap_or_else(|_| Err("it panicked".to_owned()))
                }),
            )
        });
    }
    let (mut total, mut memory) = (Outcome::default(), None);
    while let Some(case) = cases.join_next().await {
        let (seed, outcome) = case.unwrap();
        // What the first cases need is there from then on.
        let memory: &mut Memory = memory.get_or_insert_with(Memory::now);
        let memory = memory.check();
        let outcome = outcome.and_then(|outcome| panics.none().and(memory).map(|()| outcome));
        match outcome {
            Ok(outcome) => total.add(&outcome),
            Err(why) => {
                failed.push(format!("seed {seed}: {why}; it runs alone by {}", alone(seed)));
            }
        }
    }
    (total, failed)
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().expect("a number"))
}

fn alone(seed: u64) -> String {
    let variables = format!("LOCKABLE_HOSTILE_SEED={seed} LOCKABLE_HOSTILE_CASES=1");
    format!("`{variables} cargo test -p lockable-tests --test hostile`")
}

/// How many cases run where nothing else is asked for.
const USUAL: u64 = 40;

const AT_ONCE: usize = 16;

/// Only a case that hangs takes so long.
const CASE: Duration = Duration::from_secs(600);
